import pytest

from forgefield.config import TrainingConfig


@pytest.mark.parametrize("value", [1e-3, "1e-3", "0.001", " .1e-2 "])
def test_numbers_as_yaml_and_the_command_line_give_them(value):
    assert TrainingConfig(lr=value).lr == 1e-3


@pytest.mark.parametrize("value", [20, "20", 20.0, "2e1"])
def test_whole_numbers(value):
    assert TrainingConfig(epochs=value).epochs == 20


def test_null_turns_off():
    config = TrainingConfig(ema=None, clip_norm=None, early_stopping=None)
    assert (config.ema, config.clip_norm, config.early_stopping) == (None, None, None)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("weight_decay=0.1", "training: weight_decay is given, but optimizer is adam; write optimizer: adamw"),
        ("loss={energy: 0, forces: 0, virial: 0}", "training.loss: the weights energy, forces and virial are all 0"),
        ("loss.forces=-1", "training.loss.forces: expected a number of at least 0, found -1"),
        ("schedule.final_fraction=2", "training.schedule.final_fraction: expected a number of at most 1, found 2"),
    ],
)
def test_impossible_combinations(mistake, override, message):
    assert mistake(f"training.{override}").startswith(f"config: {message}")
