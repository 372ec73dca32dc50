"""What processes of a job write, and what their launchers say of those that fail; and where they meet."""

import io
import os
import socket
import subprocess
import sys

import pytest

from forgefield.launch import slurm
from forgefield.launch.processes import FAILURE
from forgefield.launch.rank_logs import Followed, Lost, first_failed, last_lines


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ("", None),
        ("srun: error: n2: task 1: Killed\nsrun: error: n1: task 0: Terminated\n", (1, "n2", "Killed")),
        ("srun: error: n2: tasks 4-7: Exited with exit code 3\n", (4, "n2", "Exited with exit code 3")),
        ("srun: error: n2: task 3: Out Of Memory\n", (3, "n2", "Out Of Memory")),
        (
            "srun: launching task 1\nsrun: error: task 0 launch failed: Bad plugin\n",
            (0, None, "launch failed: Bad plugin"),
        ),
        (
            "prterun noticed that process rank 1 with PID 7 on node n2 exited on\nsignal 9 (Killed).\n",
            (1, "n2", "exited on signal 9 (Killed)"),
        ),
    ],
)
def test_the_process_that_failed_first_is_found(messages, found):
    assert first_failed(messages) == (found and Lost(*found))


def test_only_what_is_new_is_copied(tmp_path):
    path, to = tmp_path / "log", io.StringIO()
    path.write_text("of another job\n")
    followed = Followed(path, to)
    followed.copy()
    with open(path, "a") as file:
        file.write("one\n")
    followed.copy()
    with open(path, "a") as file:
        file.write("two\n")
    followed.copy()
    assert to.getvalue() == followed.text() == "one\ntwo\n"


WRITE = """
import sys
from pathlib import Path
from forgefield.launch.rank_logs import write_own

write_own(Path(sys.argv[1]), 3, float(sys.argv[2]))
print(sys.argv[3])
"""


def test_the_end_of_a_log_is_that_of_this_start_and_has_its_name(tmp_path):
    for begun, text in ((1000.5, "old"), (2000.5, "\n".join(f"line {i}" for i in range(100)))):
        subprocess.run([sys.executable, "-c", WRITE, str(tmp_path), str(begun), text], check=True)
    first, *lines = last_lines(tmp_path, 3, 2000.5).splitlines()
    assert first == f"the last lines of rank 3 ({tmp_path}/rank_3.log):"
    assert lines[-1] == "    line 99"
    assert len(lines) == 10
    for rank, begun in ((4, 2000.5), (3, 3000.5)):  # no file, and none of this start
        assert last_lines(tmp_path, rank, begun).splitlines()[1:] == ["    (nothing written)"]


def test_a_port_follows_from_the_number_of_a_job_and_is_free():
    port = slurm.free_port(123456)
    assert slurm.free_port(123456) == port
    with socket.socket() as taken:
        taken.bind(("", port))
        assert slurm.free_port(123456) == port + 1


FAIL = """
import errno
from forgefield.errors import MachineError
from forgefield.launch import ended_together

with ended_together():
    raise {}
"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ('MachineError("the disk is full")', "error: the disk is full\n"),
        ('OSError(errno.ENOSPC, "No space left", "a.h5")', "error: a.h5: No space left; choose another path or make "),
    ],
)
def test_a_failure_that_cannot_be_noted_is_said_and_ends_the_process(tmp_path, error, line):
    environment = os.environ | {FAILURE: str(tmp_path / "gone" / "failure.json")}
    done = subprocess.run([sys.executable, "-c", FAIL.format(error)], env=environment, capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr.startswith(line)
