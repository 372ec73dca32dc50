import pytest

from forgefield.config.dataset import DatasetConfig
from forgefield.config.messages import with_full_keys


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.learning_rate=1", "config: training.learning_rate: unknown key; did you mean training.lr?"),
        ("training.lrr=1", "config: training.lrr: unknown key; did you mean training.lr?"),
        ("training.zzz=1", "config: training.zzz: unknown key; expected one of: batch, eval_batch, "),
        ("batch_size=1", "config: batch_size: unknown key; did you mean training.batch?"),
        ("lr=1", "config: lr: unknown key; did you mean training.lr?"),
        ("device=1", "config: device: unknown key; did you mean devices?"),
        ("training.devices=1", "config: training.devices: unknown key; did you mean devices?"),
        ("models.small.cutoff=5", "config: models.small.cutoff: unknown key; did you mean models.small.r_max?"),
        (
            "datasets.ethanol.unit=eV",
            "config: datasets.ethanol.unit: unknown key; did you mean datasets.ethanol.units?",
        ),
        ("training.schedule.warm=1", "config: training.schedule.warm: unknown key; "),
        ("training.epochs=1.5", "config: training.epochs: expected a whole number, found 1.5"),
        ("training.epochs=abc", "config: training.epochs: expected a whole number, found 'abc'"),
        ("training.epochs=true", "config: training.epochs: expected a number, found true"),
        ("training.epochs=0", "config: training.epochs: expected a number above 0, found 0"),
        ("training.epochs=null", "config: training.epochs: expected a whole number, found null"),
        ("training.lr=fast", "config: training.lr: expected a number, found 'fast'"),
        ("training.lr=.nan", "config: training.lr: expected a number, found '.nan'"),
        ("training.lr=nan", "config: training.lr: expected a finite number, found 'nan'"),
        ("training.lr=[1]", "config: training.lr: expected a number, found [1]"),
        ("training.ema=1", "config: training.ema: expected a number below 1, found 1"),
        ("training.drop_last=maybe", "config: training.drop_last: expected true or false, found 'maybe'"),
        ("training=3", "config: training: expected a section of keys, found 3"),
        ("runs=[]", "config: runs: expected a section of keys, found []"),
        (
            "training.batching=dynamc",
            "config: training.batching: expected 'fixed' or 'dynamic', found 'dynamc'; did you mean dynamic?",
        ),
        ("backend=tensorflow", "config: backend: expected 'jax' or 'fabric', found 'tensorflow'"),
        ("evaluation.splits=[]", "config: evaluation.splits: expected at least 1 entry, found []"),
        ("models.small.sha256=abc", "config: models.small.sha256: expected 64 hexadecimal digits, found 'abc'"),
        (
            "datasets={a b: {source: x}}",
            "config: datasets.a b: expected a name of letters, digits, _, + and -, found 'a b'",
        ),
    ],
)
def test_one_line_with_key_expectation_and_finding(mistake, override, message):
    found = mistake(override)
    assert found.startswith(message)
    assert "\n" not in found


def test_the_first_of_several_mistakes_and_how_many_more(mistake):
    found = mistake("training.epochs=abc", "training.batch=1.5", "devices=0")
    assert found == "config: devices: expected a number above 0, found 0 (and 2 more)"


def test_long_values_are_shortened(mistake):
    assert len(mistake("training.epochs=" + "x" * 500)) < 120


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("set keys.energy and keys.forces. Keys", "set datasets.a.keys.energy and datasets.a.keys.forces. Keys"),
        ("set units.energy, such as eV", "set datasets.a.units.energy, such as eV"),
        ("repair it or set `format`", "repair it or set `datasets.a.format`"),
        ("if they are right, set trust_units: true", "if they are right, set datasets.a.trust_units: true"),
        ("raise split.test", "raise datasets.a.split.test"),
        (
            "x/keys.energy, keys.energy.xyz and keys.energyy: set pbc",
            "x/keys.energy, keys.energy.xyz and keys.energyy: set pbc",
        ),
        ("split.train.xyz is set formatted", "split.train.xyz is set formatted"),
    ],
)
def test_keys_of_a_section_are_named_in_full(text, full):
    assert with_full_keys(text, "datasets.a", DatasetConfig) == full
