"""The command line: its verbs, the scripts that are the same verbs, and what a mistake looks like."""

import json
import runpy
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command

from forgefield import __version__
from forgefield.cli.app import app
from forgefield.models.potential import save_potential

STAGES = ("convert", "import-model", "statistics", "train", "evaluate", "plot")
MODELS = {"tiny": {"elements": ["H", "O"]}}
DATASETS = {
    "water": {
        "source": "water.npz",
        "units": {"energy": "kcal/mol", "length": "angstrom"},
        "split": {"train": 4, "valid": 2, "test": 2},
    }
}
CONFIG = {"dataset": "water", "model": "tiny", "datasets": DATASETS, "models": MODELS}


@pytest.mark.parametrize("verb", ["inspect", "init", *STAGES, "test", "report", "predict", "export", "doctor"])
def test_every_verb_explains_itself(forgefield, verb):
    code, output, _ = forgefield(verb, "--help")
    assert code == 0
    assert f"forgefield {verb}" in output


def test_keys_that_may_have_changed_can_come_by_the_environment(monkeypatch):
    monkeypatch.setenv("FORGEFIELD_ALLOW_CHANGED", "training.lr training.seed")
    command = get_command(app).commands["train"]
    with command.make_context("train", ["run.yaml"]) as context:
        assert list(context.params["allow_changed"]) == ["training.lr", "training.seed"]


def test_version(forgefield):
    assert forgefield("--version") == (0, f"forgefield {__version__}\n", "")


def test_help_loads_no_engine():
    code = "import sys, forgefield.cli; print([m for m in ('jax', 'torch', 'mpi4py') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("name", ["convert", "import_model", "compute_statistics", "train", "evaluate", "plot"])
def test_every_script_explains_itself(root, monkeypatch, capsys, name):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(root / "scripts" / f"{name}.py"), run_name="__main__")
    assert not end.value.code
    assert "--config" in capsys.readouterr().out


def test_inspect_prints_a_dataset_that_converts(forgefield, water, tmp_path):
    code, output, _ = forgefield("inspect", "water.npz")
    assert code == 0
    tables, _, entry = output.partition("datasets:\n")
    assert all(word in tables for word in ("8 usable", "atoms x 3", "key E, in 8 of 8 frames", "nearest neighbors"))
    (tmp_path / "my.yaml").write_text(f"dataset: water\ndatasets:\n{entry}")
    code, output, _ = forgefield("convert", "--config", "my.yaml", "--output", "converted")
    assert (code, output) == (0, "converted: 6 train, 1 valid, 1 test; of 8 frames 0 rejected, 0 unused\n")


def test_inspect_for_programs(forgefield, water):
    _, output, _ = forgefield("inspect", "water.npz", "--json", "--frames", "5")
    found = json.loads(output)
    assert found["frames"] == {"read": 5, "all": False, "usable": 5, "rejected": {}}
    assert found["entry"] == {"source": "water.npz", "units": {"energy": "eV", "length": "angstrom"}}


def test_inspect_of_nothing(forgefield):
    code, output, error = forgefield("inspect", "water.npz")
    assert (code, output, error.count("\n")) == (2, "", 1)
    assert error.startswith("error: water.npz: no such file")


def test_convert_reads_its_configuration_from_text_and_writes_where_it_is_told(forgefield, water, tmp_path):
    code, output, _ = forgefield("convert", "--config", json.dumps(CONFIG), "--output", "converted")
    assert code == 0
    assert output == "converted: 4 train, 2 valid, 2 test; of 8 frames 0 rejected, 0 unused\n"
    files = {path.name for path in (tmp_path / "converted").iterdir()}
    assert files == {"train.h5", "valid.h5", "test.h5", "conversion.json"}


def test_convert_reads_a_file_and_overrides_and_knows_the_usual_place(forgefield, water, tmp_path):
    (tmp_path / "my.yaml").write_text(json.dumps(CONFIG))
    code, output, _ = forgefield("convert", "-c", "my.yaml", "--set", "datasets.water.split.train=3")
    assert code == 0
    assert output.startswith("results/datasets/water: 3 train")
    assert (tmp_path / "results" / "datasets" / "water" / "train.h5").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert"], "config/config.yaml"),
        (["convert", "-c", json.dumps(CONFIG)], "water.npz: no such file"),
        (["convert", "-c", json.dumps(CONFIG), "--dataset", "watr"], "did you mean water?"),
        (["convert", "-c", json.dumps({"datasets": DATASETS})], "names no dataset"),
        (["import-model", "-c", json.dumps(CONFIG), "--model", "tiyn"], "did you mean tiny?"),
        (["import-model", "-c", json.dumps({"models": MODELS})], "names no model"),
        (["train", "-c", json.dumps({"trainig": {}})], "training"),
        (["train", "-c", json.dumps(CONFIG | {"runs": {"a": {}, "b": {}}})], "--run with one of: a, b"),
        (["train", "-c", json.dumps(CONFIG), "--run", "water-tiny-jx"], "did you mean water-tiny-jax?"),
        (["train", "-c", json.dumps(CONFIG)], "results/datasets/water by `forgefield convert`"),
        (["statistics", "-c", json.dumps(CONFIG)], "results/models/tiny"),
        (["evaluate", "-c", json.dumps(CONFIG)], "results/datasets/water by `forgefield convert`"),
        (["plot", "-c", json.dumps(CONFIG)], "results/runs/water-tiny-jax"),
        (["predict", "model", "in.xyz", "-o", "out.xyz"], "model: no model here"),
        (
            ["export", "model", "-o", "out.model", "--dtype", "float16"],
            "--dtype float16: no such precision; did you mean",
        ),
        (["export", "model", "-o", "."], "--output .: a directory"),
    ],
)
def test_a_mistake_ends_with_one_line_and_exit_code_2(forgefield, arguments, message):
    code, output, errors = forgefield(*arguments)
    assert code == 2
    assert output == ""
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert message in errors


def test_a_model_of_mace_torch_comes_with_the_command_that_imports_it(forgefield, tmp_path):
    (tmp_path / "small.model").write_bytes(b"a pickle")
    code, _, errors = forgefield("predict", "small.model", "in.xyz", "-o", "out.xyz")
    assert code == 2
    assert errors.startswith("error: small.model: a file, not a directory made by forgefield; import the model first")
    code, _, errors = forgefield(*shlex.split(errors.split(": forgefield ")[1]))
    assert code == 2
    assert "small.model is a pickled model" in errors


def usage_mistakes():
    """Arguments and the word that the message names, for every verb and each of its options and arguments."""
    for verb, command in get_command(app).commands.items():
        options = [p for p in command.params if p.param_type_name == "option"]
        needed = [p for p in command.params if p.required or (p not in options and p.nargs == 1)]
        everything = [w for p in needed for w in (p.opts[:1] if p in options else []) + ["x"]]
        yield [verb, *everything, "--nonsense"], "--nonsense"
        if not any(p.nargs == -1 or not p.required for p in command.params if p not in options):
            yield [verb, *everything, "additional"], "additional"
        yield from (([verb], p.name) for p in command.params[:1] if p.required)
        yield from (([verb, "x", "x"], p.opts[0]) for p in options if p.required)
        for option in options:
            if not option.is_flag:
                yield from (([verb, *everything, word], word) for word in option.opts)
    yield ["predict", "x", "x", "-o", "x", "--batch", "many"], "--batch"
    yield ["predict", "x", "x", "-o", "x", "--batch", "0"], "--batch"
    yield ["--nonsense"], "--nonsense"
    yield ["nonsense"], "nonsense"


@pytest.mark.parametrize(("arguments", "word"), list(usage_mistakes()))
def test_a_wrong_command_line_is_one_line_and_exit_code_2(forgefield, arguments, word):
    code, output, errors = forgefield(*arguments)
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert errors.startswith("error: forgefield")
    assert word in errors
    assert errors.endswith(" --help`\n")


@pytest.mark.parametrize(("wrong", "right"), [(["convert", "--datset", "x"], "--dataset"), (["cnvert"], "'convert'")])
def test_a_mistyped_word_comes_with_the_nearest(forgefield, wrong, right):
    assert right in forgefield(*wrong)[2]


@pytest.mark.parametrize("verb", ["train", "test", "evaluate", "plot"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no.yaml"], "no.yaml: no such file; give the path of a YAML configuration"),
        (["my.yaml", "other.yaml"], "'other.yaml': expected KEY=VALUE, such as training.lr=1e-3"),
        (["my.yaml", "--config", "other.yaml"], "my.yaml and --config other.yaml are both given; remove one"),
        (["my.yaml", "epoch=3"], "my.yaml: epoch: unknown key; did you mean max_epochs?"),
        (["my.yaml", "training.lr=fast"], "my.yaml: training.lr: expected a number, found 'fast'"),
    ],
)
def test_words_that_are_no_run_file_or_override(forgefield, tmp_path, verb, words, message):
    (tmp_path / "my.yaml").write_text(json.dumps(CONFIG))
    code, output, errors = forgefield(verb, *words)
    assert (code, output, errors) == (2, "", f"error: {message}\n")


def test_a_script_ends_alike(root, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["scripts/train.py", "--epochs", "3"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(root / "scripts" / "train.py"), run_name="__main__")
    assert (end.value.code, capsys.readouterr().err) == (
        2,
        "error: train.py: no such option: --epochs; see `train.py --help`\n",
    )


def test_without_a_verb_all_of_them_are_listed(forgefield):
    code, output, _ = forgefield()
    assert code == 0
    assert all(verb in output for verb in STAGES)


@pytest.mark.parametrize("verb", ["predict", "export"])
def test_a_damaged_model_is_named(forgefield, tmp_path, random_mace, verb):
    save_potential(random_mace(), tmp_path / "model")
    (tmp_path / "in.xyz").write_text("1\n\nH 0 0 0\n")
    arguments = ["predict", "model", "in.xyz", "-o", "out.xyz"] if verb == "predict" else ["export", "model", "-o", "o"]
    for text in ("{", (tmp_path / "model" / "model.json").read_text().replace('"r_max"', '"r_mxa"')):
        (tmp_path / "model" / "model.json").write_text(text)
        code, output, errors = forgefield(*arguments)
        assert (code, output, errors.count("\n")) == (2, "", 1)
        assert errors.startswith("error: model/model.json: ")


def test_an_unknown_precision_of_predictions_is_one_line(forgefield, tmp_path, random_mace):
    save_potential(random_mace(), tmp_path / "model")
    (tmp_path / "in.xyz").write_text("1\n\nH 0 0 0\n")
    code, _, errors = forgefield("predict", "model", "in.xyz", "-o", "out.xyz", "--precision", "float16")
    assert (code, errors.count("\n")) == (2, 1)
    assert errors.startswith("error: precision 'float16': unknown; did you mean float")
