"""However many devices and processes share the batches, the training is the same."""

import signal

import numpy as np
import pytest
from conftest import write_store
from launching import TRAINING, ended, train

from forgefield.trainers.checkpoints import saved_checkpoints
from forgefield.trainers.record import Place
from forgefield.units import Units

# words for the training, and how many processes of which kind
WAYS = {
    "1 device": (["--parallelism", "single"], {}),
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
    """The results of a training on one device, with its data in memory."""
    return train(tmp_path_factory.mktemp("trainings") / "alone", ["--parallelism", "single"])


@pytest.fixture(scope="module")
def unbroken(stored, tmp_path_factory):
    """A function that gives the results of a training that nothing disturbed, on stores."""
    found = {}

    def make(way):
        if way not in found:
            words, together = WAYS[way]
            output = tmp_path_factory.mktemp("trainings") / "unbroken"
            found[way] = train(output, [*words, "--data", stored], **together)
        return found[way]

    return make


def assert_same(found, expected, rtol):
    assert expected["step"][-1] >= 50
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=rtol, err_msg=name)


@pytest.mark.parametrize("way", WAYS)
def test_stores_give_the_same_training_on_all_devices(unbroken, alone, way):
    assert_same(unbroken(way), alone, 1e-10)


@pytest.mark.parametrize("way", ["2 devices", "2 ranks", "2 JAX processes with 2 devices each"])
def test_lists_in_memory_give_the_same_training(alone, tmp_path, way):
    words, together = WAYS[way]
    assert_same(train(tmp_path / "run", words, **together), alone, 1e-10)


def test_single_precision_agrees_as_far_as_it_can(stored, tmp_path):
    words = ["--precision", "float32", "--data", stored]
    one = train(tmp_path / "one", [*words, "--parallelism", "single"])
    for name, ranks in (("two", 2), ("four", 4)):
        assert_same(train(tmp_path / name, words, ranks=ranks), one, 1e-5)


# of 4 steps in each epoch: in the sixth, or in the validation after it
@pytest.mark.parametrize(("way", "step"), [("1 device", 24), ("2 ranks", 21), ("2 JAX processes", 24)])
def test_a_training_that_is_killed_and_asked_to_stop_ends_with_the_same_bits(stored, unbroken, tmp_path, way, step):
    words, together = WAYS[way]
    words = [*words, "--data", stored]
    # with a checkpoint after every third in all
    codes = ended([TRAINING, tmp_path, *words, "--event", "kill@7"], **together)
    assert -signal.SIGKILL in codes or "ranks" in together
    assert not (tmp_path / "params.safetensors").exists()
    assert {Place.of(path) for path in saved_checkpoints(tmp_path)} <= {(0, 3), (1, 0), (1, 2), (2, 0)}

    codes = ended([TRAINING, tmp_path, *words, "--event", f"ask@{step}"], **together)
    assert set(codes) == {75}
    newest, *_ = saved_checkpoints(tmp_path)
    assert Place.of(newest) == (5, 4)  # which the processes heard of some steps later, all by the same

    found, expected = train(tmp_path, words, **together), unbroken(way)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
