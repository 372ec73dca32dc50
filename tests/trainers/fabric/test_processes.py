"""However many processes share the batches, the training is the same."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from labelled_data import SETTINGS, labelled_structures, write_stores

from forgefield.models.potential import save_potential

PROGRAM = Path(__file__).parent / "train_small.py"
EPOCHS = SETTINGS["epochs"]
TIMES = ("seconds", "data_wait_ms_per_step")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, small_potential):
    """The directory of data and model."""
    directory = tmp_path_factory.mktemp("inputs") / "data"
    write_stores(directory, train=labelled_structures(20), valid=labelled_structures(7, seed=5))
    save_potential(small_potential, directory / "model")
    return directory


@pytest.fixture(scope="module")
def trained(inputs, tmp_path_factory):
    """A function that trains in so many processes; parameters by rank, and the rows of the history."""
    return lambda devices, epochs=EPOCHS, output=None: train(
        inputs, output or tmp_path_factory.mktemp("run"), devices, epochs
    )


@pytest.fixture(scope="module")
def alone(trained):
    return trained(1)


def train(inputs, output, devices, epochs=EPOCHS):
    subprocess.run([sys.executable, PROGRAM, *map(str, (inputs, output, devices, epochs))], check=True)
    ranks = [dict(np.load(output / f"rank_{i}.npz")) for i in range(devices)]
    with open(output / "history.csv") as file:
        return ranks, list(csv.DictReader(file))


def assert_same(found, expected):
    (ranks, rows), ((params,), expected_rows) = found, expected
    for rank in ranks:
        assert rank.keys() == params.keys()
        for name, value in params.items():
            assert rank[name].tobytes() == ranks[0][name].tobytes(), name
            np.testing.assert_allclose(rank[name], value, rtol=1e-10, atol=1e-10, err_msg=name)
    assert int(rows[-1]["step"]) == 4 * EPOCHS
    assert [row["epoch"] for row in rows] == [str(i + 1) for i in range(EPOCHS)]
    for row, other in zip(rows, expected_rows, strict=True):
        for name in row.keys() - TIMES:
            assert float(row[name]) == pytest.approx(float(other[name]), rel=1e-10), name


@pytest.mark.parametrize("devices", [2, 3])
def test_processes_give_the_same_training_as_one(trained, alone, devices):
    assert_same(trained(devices), alone)


@pytest.mark.parametrize(("first", "then"), [(2, 1), (1, 3)])
def test_another_number_of_processes_continues_a_training(trained, alone, tmp_path, first, then):
    trained(first, epochs=EPOCHS // 2, output=tmp_path)
    assert_same(trained(then, output=tmp_path), alone)
