"""A killed conversion leaves its directory behind, which the next one removes, and no other."""

import subprocess
import sys

import pytest

from forgefield.data.workplace import workplace

STAY = (
    "import sys; from pathlib import Path; from forgefield.data.workplace import workplace\n"
    "with workplace(Path(sys.argv[1])) as work: print(work.name, flush=True); sys.stdin.read()"
)


def test_what_a_killed_process_left_is_removed_at_the_next_start(tmp_path):
    output = tmp_path / "water"
    words = [sys.executable, "-c", STAY, output]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        name = process.stdout.readline().strip()
        (tmp_path / name / "train.h5").write_text("half")
        with workplace(output):
            assert (tmp_path / name / "train.h5").exists()  # it is still at work
        process.kill()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with workplace(output) as work:
        assert [path.name for path in tmp_path.iterdir()] == [work.name] != [name]
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_after_a_mistake_and_others_stay(tmp_path):
    (tmp_path / ".water.mine" / ".lock").mkdir(parents=True)  # which cannot be locked
    with pytest.raises(ZeroDivisionError), workplace(tmp_path / "water"):
        1 / 0  # noqa: B018
    assert [path.name for path in tmp_path.iterdir()] == [".water.mine"]
