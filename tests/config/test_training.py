import pytest

from forgefield.config import TrainingConfig


@pytest.mark.parametrize("value", [1e-3, "1e-3", "0.001", " .1e-2 "])
def test_numbers_as_yaml_and_the_command_line_give_them(value):
    assert TrainingConfig(lr=value).lr == 1e-3


@pytest.mark.parametrize(
    ("value", "minutes"), [(90, 90), ("90", 90), ("90 min", 90), ("3.5h", 210), (" 2 d", 2880), ("30 s", 0.5)]
)
def test_times(value, minutes):
    assert TrainingConfig(stop_before=value).stop_before == minutes


@pytest.mark.parametrize("value", [20, "20", 20.0, "2e1"])
def test_whole_numbers(value):
    assert TrainingConfig(epochs=value).epochs == 20


@pytest.mark.parametrize(
    ("name", "own"), [("32-true", "float32"), ("64-true", "float64"), ("bf16-mixed", "bf16-mixed")]
)
def test_precisions_by_the_names_that_lightning_has(name, own):
    training = TrainingConfig(precision=name)
    assert (training.precision, training.dtype) == (own, "float64" if own == "float64" else "float32")


def test_null_turns_off():
    config = TrainingConfig(ema=None, clip_norm=None, early_stopping=None)
    assert (config.ema, config.clip_norm, config.early_stopping) == (None, None, None)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("weight_decay=0.1", "training: weight_decay is given, but optimizer is adam; write optimizer: adamw"),
        ("loss={energy: 0, forces: 0, virial: 0}", "training.loss: the weights energy, forces and virial are all 0"),
        ("loss.forces=-1", "training.loss.forces: expected a number of at least 0, found -1"),
        (
            "stop_before=soon",
            "training.stop_before: expected minutes, or a text such as 90 min, 3.5 h or 2 d, found",
        ),
        ("stop_before=0 h", "training.stop_before: expected a number above 0, found 0.0"),
        ("schedule.final_fraction=2", "training.schedule.final_fraction: expected a number of at most 1, found 2"),
    ],
)
def test_impossible_combinations(mistake, override, message):
    assert mistake(f"training.{override}").startswith(f"config: {message}")


def test_a_precision_of_another_name(mistake):
    expected = "'float32', 'float64', 'bf16-mixed', '32-true' or '64-true'"
    assert mistake("training.precision=16-mixed").startswith(
        f"config: training.precision: expected {expected}, found '16-mixed'"
    )
