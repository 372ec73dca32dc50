"""Processes that share the statistics' work write the same bytes as one."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forgefield.data.structures import Structure
from forgefield.models.potential import save_potential
from forgefield.statistics.compute import BLOCK

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MPIRUN = [Path(sys.executable).with_name("mpirun"), "-n", "2", "--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]


@pytest.fixture
def statistics(write_store, untrained, tmp_path):
    """A function that lets the command write statistics of three blocks of structures, and returns what it wrote."""
    random, structures = np.random.default_rng(0), []
    for i in range(2 * BLOCK + 100):
        n = random.integers(2, 5)
        positions = np.arange(n)[:, None] + random.uniform(0, 0.2, (n, 3))
        labels = {"energy": random.normal(), "forces": random.normal(size=(n, 3))}
        structures.append(Structure(random.choice([1, 6, 8], n), positions, source_index=i, **labels))
    write_store(sorted(structures, key=len))
    save_potential(replace(untrained, pretrained=True), tmp_path / "model")
    config = {
        "datasets": {"a": {"source": "a.xyz"}},
        "models": {"m": {"architecture": "mace", "foundation": str(tmp_path / "model")}},
        "dataset": "a",
        "model": "m",
        "parallelism": "mpi",
    }

    def run(*launcher, devices):
        command = [Path(sys.executable).with_name("forgefield"), "statistics", "--config", json.dumps(config)]
        command += ["--set", f"devices={devices}", "--data", tmp_path, "--model", tmp_path / "model"]
        output = tmp_path / f"{devices}.json"
        done = subprocess.run(
            [*launcher, *command, "--output", output], env=os.environ | ROOT, capture_output=True, text=True
        )
        return output, done

    return run


def test_two_ranks_give_the_bytes_of_one(statistics):
    alone, done = statistics(devices=1)
    assert done.returncode == 0, done.stderr
    both, done = statistics(*MPIRUN, devices=2)
    assert done.returncode == 0, done.stderr
    assert json.loads(alone.read_text())["n_structures"] == 2 * BLOCK + 100
    assert json.loads(alone.read_text())["residual"]["before"]["mae"] > 0
    assert both.read_bytes() == alone.read_bytes()
    assert done.stdout.count("energy shifts (eV) by") == 1


def test_a_mistake_ends_both_ranks(statistics, tmp_path):
    content = bytearray((tmp_path / "train.h5").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "train.h5").write_bytes(content)
    output, done = statistics(*MPIRUN, devices=2)
    assert done.returncode == 2
    assert "damaged, or changed after it was written" in done.stderr
    assert not output.exists()
