"""Optimizers, precisions and micro-batches do the same in one process and in two, and continue bit for bit."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from labelled_data import labelled_structures, write_stores

from forgefield.models.potential import save_potential

PROGRAM = Path(__file__).parent / "train_small.py"
EPOCHS = 4
CLIPPED = {"micro_batches": 2, "clip_norm": 0.5, "ema": 0.9, "optimizer": "adamw", "weight_decay": 0.1}
SCHEDULE = {"kind": "exponential", "warmup_steps": 3, "constant_steps": 5}
MUON = {"optimizer": "muon", "weight_decay": 0.1, "micro_batches": 2}
# how well two processes agree with one: Muon rounds matrices to bfloat16, which can enlarge a difference of a last bit
FEATURES = {
    "clipped micro-batches": (CLIPPED, 1e-10),
    "schedule": ({"schedule": SCHEDULE}, 1e-10),
    "muon": (MUON, 1e-2),
    "32-true": ({"precision": "32-true"}, 1e-3),
    "64-true": ({"precision": "64-true"}, 1e-10),
    "bf16-mixed": ({"precision": "bf16-mixed"}, 2e-2),
}
# what others cover in part: test_processes.py and, in one process, test_trainer.py
SLOW = ("schedule", "32-true", "64-true")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, small_potential):
    """The directory of data and model."""
    directory = tmp_path_factory.mktemp("inputs") / "data"
    write_stores(directory, train=labelled_structures(15), valid=labelled_structures(5, seed=5))
    save_potential(small_potential, directory / "model")
    return directory


def train(inputs, output, devices, settings, epochs=EPOCHS):
    """The parameters of every rank, and the rows of the history."""
    output.mkdir(exist_ok=True)
    words = [PROGRAM, inputs, output, devices, epochs, json.dumps({"epochs": EPOCHS} | settings)]
    done = subprocess.run([sys.executable, *map(str, words)], check=True, stderr=subprocess.PIPE, text=True)
    # process 0 alone reports
    assert done.stderr.count(f"epoch {epochs}/{epochs}") == 1
    with open(output / "history.csv") as file:
        rows = list(csv.DictReader(file))
    return [dict(np.load(output / f"rank_{i}.npz")) for i in range(devices)], rows


@pytest.mark.parametrize(
    "feature", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in FEATURES]
)
def test_two_processes_do_what_one_does_and_continue_bit_for_bit(inputs, tmp_path, feature):
    settings, tolerance = FEATURES[feature]
    (alone,), expected = train(inputs, tmp_path / "one", 1, settings)
    (first, second), rows = train(inputs, tmp_path / "two", 2, settings)
    dtype = "float32" if settings.get("precision") in ("32-true", "bf16-mixed") else "float64"
    assert {value.dtype.name for value in first.values()} == {dtype}
    for name, value in alone.items():
        assert first[name].tobytes() == second[name].tobytes(), name
        np.testing.assert_allclose(first[name], value, rtol=tolerance, atol=tolerance, err_msg=name)
    for row, other in zip(rows, expected, strict=True):
        for column in ("lr", "train_loss", "valid_loss", "valid_forces_mae_meV_per_A"):
            assert float(row[column]) == pytest.approx(float(other[column]), rel=tolerance), column

    train(inputs, tmp_path / "stopped", 2, settings, epochs=1)
    (continued, _), found = train(inputs, tmp_path / "stopped", 2, settings)
    assert [row["epoch"] for row in found] == [str(i + 1) for i in range(EPOCHS)]
    times = {"seconds": 0, "data_wait_ms_per_step": 0}
    assert [row | times for row in found] == [row | times for row in rows]
    for name, value in first.items():
        assert continued[name].tobytes() == value.tobytes(), name
