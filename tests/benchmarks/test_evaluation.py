"""The benchmark of evaluations: its command in docs/performance.md, and its table. A run of it takes minutes."""

import shlex
from pathlib import Path

import ase.io
import evaluation
import h5py
import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
COMMAND = "python benchmarks/evaluation.py"


def test_the_commands_of_the_page_are_understood():
    [line] = [line for line in PAGE.read_text().splitlines() if line.startswith(COMMAND)]
    options = evaluation.parse(shlex.split(line.removeprefix(COMMAND)))
    assert options.update_docs
    assert options.methods == tuple(evaluation.METHODS)


def test_the_table_compares_whole_programs_and_rates_round_by_round():
    seconds = {
        "forgefield": {"many": [10.0, 12.0], "few": [2.0, 2.0]},
        "mace_eval_configs": {"many": [40.0, 60.0], "few": [8.0, 10.0]},
        "mpi": {"many": [6.0, 8.0], "few": [2.0, 3.0]},
    }
    results = {
        "machine": {"processor": "a", "cores": 2, "versions": {}},
        "cores": {"forgefield": 1, "mace_eval_configs": 1, "mpi": 2},
        **{"structures": 1064, "few": 64, "batch": 32, "channels": 4, "origin": "b", "difference": 1e-9},
    }
    lines = evaluation.markdown(results | {"seconds": seconds}).splitlines()
    assert lines[-1] == "| forgefield, mpi | 2 | 7.0 | 2.5 | 222 | **1.58** (1.50 to 1.67) | **2.00** (2.00 to 2.00) |"
    assert lines[-2].startswith("| mace_eval_configs | 1 | 50.0 | 9.0 | 24 | **0.23** (0.20 to 0.25) | ")


def test_programs_that_differ_are_not_compared(tmp_path):
    (tmp_path / "many" / "run").mkdir(parents=True)
    atoms = ase.Atoms("H2", np.eye(3)[:2])
    atoms.arrays["MACE_forces"] = np.ones((2, 3))
    ase.io.write(tmp_path / "many" / "theirs.xyz", [atoms])
    with h5py.File(tmp_path / "many" / "run" / "predictions_test.h5", "w") as file:
        file["trained/forces"] = np.ones((1, 2, 3)) + 1e-3
    with pytest.raises(SystemExit, match=r"forces differ by 1\.0e-03"):
        evaluation.difference(tmp_path)
