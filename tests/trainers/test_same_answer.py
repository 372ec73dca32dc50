"""However many devices and processes share the batches, the training is the same."""

import os
import signal
import time

import numpy as np
import pytest
from conftest import write_store
from launching import TRAINING, start, train

from forgefield.trainers.checkpoints import saved_checkpoints
from forgefield.units import Units

# words for the training, and how many processes of which kind
WAYS = {
    "2 devices": (["--devices", 2], {}),
    "4 devices": (["--devices", 4], {}),
    "1 rank": (["--parallelism", "mpi"], {"ranks": 1}),
    "2 ranks": ([], {"ranks": 2}),
    "4 ranks": ([], {"ranks": 4}),
    "2 JAX processes": ([], {"processes": 2}),
    "2 JAX processes with 2 devices each": (["--devices", 2], {"processes": 2}),
}


@pytest.fixture(scope="module")
def stored(labelled, tmp_path_factory):
    """The directory of the data as stores."""
    directory = tmp_path_factory.mktemp("data")
    for name, structures in (("train", labelled[:43]), ("valid", labelled[43:])):
        write_store(directory / f"{name}.h5", structures, Units("kJ/mol", "nm"))
    return directory


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Directory and results of a training on one device that nothing disturbed."""
    output = tmp_path_factory.mktemp("trainings") / "alone"
    return output, train(output, ["--parallelism", "single"])


def assert_same(found, expected, rtol):
    assert expected["step"][-1] >= 50
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=rtol, err_msg=name)


@pytest.mark.parametrize("way", WAYS)
def test_stores_give_the_same_training_on_all_devices(stored, alone, tmp_path, way):
    words, together = WAYS[way]
    assert_same(train(tmp_path / "run", [*words, "--data", stored], **together), alone[1], 1e-10)


@pytest.mark.parametrize("way", ["2 devices", "2 ranks", "2 JAX processes with 2 devices each"])
def test_lists_in_memory_give_the_same_training(alone, tmp_path, way):
    words, together = WAYS[way]
    assert_same(train(tmp_path / "run", words, **together), alone[1], 1e-10)


def test_single_precision_agrees_as_far_as_it_can(stored, tmp_path):
    words = ["--precision", "float32", "--data", stored]
    one = train(tmp_path / "one", [*words, "--parallelism", "single"])
    for name, ranks in (("two", 2), ("four", 4)):
        assert_same(train(tmp_path / name, words, ranks=ranks), one, 1e-5)


def test_a_killed_training_continues_bit_for_bit(alone, tmp_path):
    words = [TRAINING, tmp_path, "--parallelism", "single"]
    (killed,) = start(words)
    while len(saved_checkpoints(tmp_path)) < 2 and killed.poll() is None:
        time.sleep(0.005)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not (tmp_path / "params.safetensors").exists()
    train(tmp_path, ["--parallelism", "single"])
    expected = (alone[0] / "params.safetensors").read_bytes()
    assert (tmp_path / "params.safetensors").read_bytes() == expected
