import numpy as np
import pytest

from forgefield.errors import UserError
from forgefield.trainers.arguments import checked_settings, floating_type

RIGHT = {
    "gammas": {"U": 1.0, "F": 1.0},
    "batch": 4,
    "batch_per_device": None,
    "eval_batch": None,
    "loss": "mse",
    "huber_delta": 0.01,
    "ema": None,
    "early_stopping": None,
    "checkpoint_every": 1,
    "checkpoint_steps": None,
    "checkpoint_minutes": None,
    "keep_checkpoints": 2,
    "check_replicas_every": None,
    "seed": 0,
}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"loss": "msee"}, "loss: expected .*mse.*found .*msee"),
        ({"batch": 0}, "batch: expected .*0"),
        ({"batch": "four"}, "batch: expected"),
        ({"eval_batch": -1}, "eval_batch: expected"),
        ({"ema": 2.0}, "ema: expected"),
        ({"early_stopping": 0}, "early_stopping: expected"),
        ({"checkpoint_every": 0}, "checkpoint_every: expected"),
        ({"checkpoint_steps": 0}, "checkpoint_steps: expected"),
        ({"checkpoint_minutes": -1}, "checkpoint_minutes: expected"),
        ({"keep_checkpoints": 0}, "keep_checkpoints: expected"),
        ({"check_replicas_every": -3}, "check_replicas_every: expected"),
        ({"gammas": {"U": -1.0, "F": 1.0}}, "gammas.U: expected"),
        ({"gammas": {"U": 0.0}}, "gammas: every weight is 0"),
        ({"gammas": {"force": 1.0}}, "gammas: unknown term 'force'"),
    ],
)
def test_a_wrong_argument_is_named(wrong, message):
    with pytest.raises(UserError, match=message):
        checked_settings(**RIGHT | wrong)


def test_numbers_of_numpy_are_numbers():
    settings = checked_settings(**RIGHT | {"batch": np.int64(8), "ema": np.float32(0.5)})
    assert (settings.batch, settings.ema) == (8, 0.5)


@pytest.mark.parametrize("params", [{"D": 1.5}, {}, {"D": np.ones(2, int)}])
def test_parameters_are_arrays_of_one_floating_type(params):
    with pytest.raises(UserError, match="init_params: arrays of one floating-point type"):
        floating_type(params)
