"""A damaged store is refused, or nothing that it holds was hit: never other numbers, a crash or a hang."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from forgefield.data.store import StoreWriter
from forgefield.data.structures import Structure
from forgefield.units import Units

WAIT = "import sys; from pathlib import Path; sys.stdin.readline(); from forgefield.data.store import Store; "
READ = "s = Store(sys.argv[1]); print(len(s.read(slice(None))), flush=True); sys.stdin.readline()"


@pytest.fixture(params=[False, True], ids=["padded", "packed"])
def path(request, tmp_path):
    random = np.random.default_rng(0)
    structures = [
        Structure(
            numbers=np.array([6, 8, 1][:n]),
            positions=random.normal(size=(n, 3)),
            cell=9 * np.eye(3),
            pbc=np.ones(3, bool),
            energy=random.normal(),
            forces=random.normal(size=(n, 3)),
            virial=random.normal(size=(3, 3)),
            source_index=n,
        )
        for n in (1, 2, 3, 3)
    ]
    attributes = {"dataset": "x", "split": "train", "source": '["a.xyz"]', "source_first_frame": "[0]"}
    attributes |= {"source_sha256": f'["{64 * "a"}"]', "isolated_atoms": '{"unit": "eV", "energies": {}}'}
    layout = {"n_structures": 4, "max_atoms": 3, "dtype": "float64", "has_virial": True}
    layout |= {"packed_sizes": np.array([1, 2, 3, 3])} if request.param else {}
    with StoreWriter(tmp_path / "a.h5", units=Units("kJ/mol", "nm"), attributes=attributes, **layout) as writer:
        writer.append(structures)
    return tmp_path / "a.h5"


def test_damage_of_any_kind(path):
    words = [sys.executable, Path(__file__).with_name("damage.py"), path, "0", "300"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=500, check=True)
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.split()[0] not in ("refused", "same")] == []
    assert Counter(line.split()[0] for line in lines)["refused"] > 150


@pytest.mark.parametrize("locking", ["TRUE", "FALSE"])
def test_two_processes_read_while_a_third_waits(path, locking):
    """The first two have the file open at the same time; the third opens it while they do."""
    start = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = os.environ | {"HDF5_USE_FILE_LOCKING": locking}
    words = [sys.executable, "-c", WAIT + READ, path]
    processes = [subprocess.Popen(words, **start, env=environment) for _ in range(3)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "4\n"
    assert [process.poll() for process in processes] == [None] * 3
    for process in processes:
        process.communicate("\n", timeout=60)
        assert process.returncode == 0
