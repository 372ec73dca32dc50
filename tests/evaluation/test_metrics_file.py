"""A ``metrics.json`` that is not what it should be, read for the table and for the pictures."""

import json

import pytest

from forgefield.config.evaluation import PlotsConfig
from forgefield.errors import UserError
from forgefield.evaluation.metrics_file import read_metrics
from forgefield.evaluation.plots import plot_run
from forgefield.evaluation.summary import print_summary
from forgefield.files import write_json
from forgefield.models.digest import model_sha256

FORCES = ("splits", "test", "trained", "forces")


def change(*path, **values):
    """A function that changes the section at ``path``; None removes a key."""

    def edit(content):
        section = content
        for key in path:
            section = section[key]
        section.update({key: value for key, value in values.items() if value is not None})
        for key in [key for key, value in values.items() if value is None]:
            del section[key]

    return edit


def test_a_sound_file_is_read(tmp_path, metrics_content):
    (tmp_path / "metrics.json").write_text(json.dumps(metrics_content))
    metrics = read_metrics(tmp_path)
    assert metrics.splits["test"].trained.forces.p95 == 0.35
    assert metrics.parts["test"].element["O"].errors.trained.forces.mae_interval == [0.05, 0.15]


def test_errors_of_another_model_than_that_of_the_run_are_refused(tmp_path, metrics_content):
    model = tmp_path / "model"
    write_json(model / "model.json", {"cutoff": 4.0, "source": {"name": "a.model"}, "created_by": "forgefield 0"})
    (model / "weights.safetensors").write_bytes(b"weights")
    write_json(tmp_path / "metrics.json", metrics_content | {"model": model_sha256(model)})
    write_json(model / "model.json", {"cutoff": 4.0, "source": {"name": "b.model"}, "created_by": "forgefield 1"})
    (model / ".exported.model").touch()
    read_metrics(tmp_path)
    for path, content in (("model.json", '{"cutoff": 5.0}'), ("weights.safetensors", "others")):
        before = (model / path).read_bytes()
        (model / path).write_text(content)
        with pytest.raises(UserError, match=r"metrics\.json: of another model than .*/model, by its sha256; evaluate"):
            read_metrics(tmp_path)
        (model / path).write_bytes(before)
    (model / "weights.safetensors").unlink()
    with pytest.raises(UserError, match=r"model/weights\.safetensors: no such file; import or train the model again"):
        read_metrics(tmp_path)


@pytest.mark.parametrize("read", [print_summary, lambda run: plot_run(run, PlotsConfig())], ids=["table", "pictures"])
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("{", "not JSON"),
        ("[]", "holds a list, expected an object with keys"),
        ("{}", "format: missing; expected the version of this layout"),
        (change(format=1), "format: expected 3"),
        (change(splits=None), "splits: missing; expected errors by split"),
        (change(splits={}), "splits: expected at least 1 entry"),
        (change("splits", test={}), "splits.test: expected foundation, refitted and finetuned, or trained"),
        (change("splits", test=3), "splits.test: expected a section of keys, found 3"),
        (change("splits", "test", "trained", forces=None), "splits.test.trained.forces: missing"),
        (change(*FORCES, mae=None), "splits.test.trained.forces.mae: missing; expected the mean absolute error"),
        (change(*FORCES, rmse="x"), "splits.test.trained.forces.rmse: expected a number"),
        (change(*FORCES, mae_interval=[0.1]), "splits.test.trained.forces.mae_interval"),
        (lambda content: content["splits"]["test"]["trained"]["forces"].update(mae=None), "3 values compared, but mae"),
        (lambda content: content["splits"]["test"].update(finetuned=content["splits"]["test"]["trained"]), "found"),
    ],
)
def test_a_damaged_file_is_one_line_with_file_key_and_way_out(tmp_path, metrics_content, read, edit, message):
    if callable(edit):
        edit(metrics_content)
        edit = json.dumps(metrics_content)
    (tmp_path / "metrics.json").write_text(edit)
    with pytest.raises(UserError) as caught:
        read(tmp_path)
    found = str(caught.value)
    assert found.startswith(f"{tmp_path}/metrics.json: ")
    assert message in found
    assert found.endswith("; evaluate the run again with `forgefield evaluate`")
    assert "\n" not in found
