"""A ``metrics.json`` that is not what it should be, read for the table and for the pictures."""

import json
from copy import deepcopy

import pytest

from forgefield.config.evaluation import PlotsConfig
from forgefield.errors import UserError
from forgefield.evaluation.plots import plot_run
from forgefield.evaluation.summary import print_summary

ERRORS = {"n": 3, "mae": 0.1, "rmse": 0.2, "r2": 0.9}
SOUND = {"splits": {"test": {"trained": {"energy_per_atom": {**ERRORS}, "forces": {**ERRORS}}}}}
HERE = ("splits", "test", "trained", "forces")


def changed(*keys, **change):
    """The sound content with one section changed; None removes a key."""
    content = deepcopy(SOUND)
    section = content
    for key in keys:
        section = section[key]
    section.update(change)
    for key in [key for key, value in section.items() if value is None]:
        del section[key]
    return json.dumps(content)


@pytest.mark.parametrize("read", [print_summary, lambda run: plot_run(run, PlotsConfig())], ids=["table", "pictures"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "holds a list, expected an object with keys"),
        ("{}", "splits: missing; expected errors by split"),
        ('{"splits": {}}', "splits: expected at least 1 entry"),
        ('{"splits": {"test": {}}}', "splits.test: expected foundation, refitted and finetuned, or trained"),
        ('{"splits": {"test": 3}}', "splits.test: expected a section of keys, found 3"),
        (changed("splits", "test", finetuned=SOUND["splits"]["test"]["trained"]), "splits.test: expected foundation"),
        (changed("splits", "test", "trained", forces=None), "splits.test.trained.forces: missing"),
        (changed(*HERE, mae=None), "splits.test.trained.forces.mae: missing; expected the mean absolute error"),
        (changed(*HERE, rmse="x"), "splits.test.trained.forces.rmse: expected a number"),
        (json.dumps(SOUND).replace("0.1", "null"), "splits.test.trained.energy_per_atom: 3 values compared, but mae"),
    ],
)
def test_a_damaged_file_is_one_line_with_file_key_and_way_out(tmp_path, read, text, message):
    (tmp_path / "metrics.json").write_text(text)
    with pytest.raises(UserError) as caught:
        read(tmp_path)
    found = str(caught.value)
    assert found.startswith(f"{tmp_path}/metrics.json: {message}")
    assert found.endswith("; evaluate the run again with `forgefield evaluate`")
    assert "\n" not in found
