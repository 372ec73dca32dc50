import json
import re

import pytest

from forgefield.config import load_config
from forgefield.config.aliases import ALIASES
from forgefield.errors import UserError

FILES = {"train_path": "a.xyz", "valid_path": "b.xyz", "test_path": "c.xyz"}
RUN = FILES | {"foundation": "small", "output_path": "out", "backend": "fabric"}
VALUES = FILES | {
    "foundation": "small",
    "r_max": 4.5,
    "train_batch_size": 12,
    "eval_batch_size": 7,
    "dynamic_batching": True,
    "max_epochs": 3,
}


def the_run(content, overrides=()):
    config = load_config(content, overrides)
    return config.run(config.run_names[0])


def mistake(content, overrides=()):
    with pytest.raises(UserError) as error:
        load_config(content, overrides)
    return str(error.value)


def value(content, key):
    for section in key.split("."):
        content = content[section]
    return content


def test_the_documented_names_are_all(root):
    rows = re.findall(r"^\| `(\w+)` \| `([\w.]+)`", (root / "docs/run_files.md").read_text(), re.MULTILINE)
    assert dict(rows) == {alias: key.format(dataset="DATASET", model="MODEL") for alias, key in ALIASES.items()}


@pytest.mark.parametrize("where", ["file", "overrides"])
@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_sets_its_key(alias, where):
    scratch = {"model": "m", "models": {"m": {"elements": ["H"]}}} if alias != "foundation" else {"model": "m"}
    base = FILES | scratch | {"dataset": "d", "backend": "fabric"} | {alias: VALUES[alias]}
    overrides = [f"{alias}={json.dumps(base.pop(alias))}"] if where == "overrides" else []
    key = ALIASES[alias].format(dataset="d", model="m")
    expected = {"dynamic_batching": "dynamic"}.get(alias, [VALUES[alias]] if alias in FILES else VALUES[alias])
    assert value(load_config(base, overrides).model_dump(), key) == expected


def test_a_run_file_of_aliases_alone_is_a_run():
    config = load_config(RUN)
    run = config.run("data-model-fabric")
    assert (run.output_path, config.models["model"].foundation) == ("out", "small")
    assert config.datasets["data"].split.method == "files"


def test_aliases_are_about_the_entries_there_are(tmp_path):
    """Files of the folder beside the run file are other datasets."""
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "other.yaml").write_text("source: other.npz")
    units = {"energy": "kcal/mol", "length": "angstrom"}
    content = {key: item for key, item in RUN.items() if key != "foundation"} | {
        "datasets": {"mine": {"units": units}},
        "models": {"tiny": {"elements": ["H"]}},
        "r_max": 4.0,
    }
    (tmp_path / "run.yaml").write_text(json.dumps(content))
    config = load_config(tmp_path / "run.yaml")
    assert config.run_names == ["mine-tiny-fabric"]
    assert (config.datasets["mine"].units.energy, config.models["tiny"].r_max) == ("kcal/mol", 4.0)


def test_overrides_replace_what_the_file_says_by_either_name():
    assert the_run(RUN | {"max_epochs": 3}, ["training.epochs=4"]).training.epochs == 4
    assert the_run(RUN | {"training": {"epochs": 3}}, ["max_epochs=4"]).training.epochs == 4
    assert the_run(RUN, ["dynamic_batching=false"]).training.batching == "fixed"


@pytest.mark.parametrize("alias", sorted(ALIASES.keys() - FILES.keys() - {"foundation", "r_max"}))
def test_an_alias_and_its_key_in_one_file(alias):
    section, key = ALIASES[alias].split(".")
    assert f"{alias} and {section}.{key} are both given" in mistake(RUN | {alias: True, section: {key: 1}})


@pytest.mark.parametrize(
    ("more", "overrides", "message"),
    [
        ({"foundation": "a", "model": "m", "models": {"m": {"foundation": "b"}}}, [], "foundation and models.m.found"),
        ({}, ["max_epochs=1", "training.epochs=1"], "config: max_epochs and training.epochs are both given"),
        ({"max_epochs": "many"}, [], "config: max_epochs (training.epochs): expected a whole number, found 'many'"),
        ({"dynamic_batching": "yes"}, [], "config: dynamic_batching: expected true or false, found 'yes'"),
        ({}, ["dynamic_batching=maybe"], "config: dynamic_batching: expected true or false, found 'maybe'"),
        ({"training": 3}, ["training.lr=1"], "config: 'training.lr=1': training is not a section"),
        ({"train_pth": "x"}, [], "config: train_pth: unknown key; did you mean train_path?"),
        ({}, ["max_epoch=1"], "config: max_epoch: unknown key; did you mean max_epochs?"),
        ({}, ["trainin.lr=1"], "config: trainin: unknown key; did you mean training?"),
        ({"runs": {"a": {"max_epochs": 1}}}, [], "runs.a.max_epochs: not a key of a run"),
        ({"runs": {"a": {}, "b": {}}}, [], "runs.b: output_path is out, as of run a; give each its own"),
    ],
)
def test_mistakes(more, overrides, message):
    assert message in mistake(RUN | more, overrides)


@pytest.mark.parametrize("path", ["train_path", "valid_path"])
def test_one_of_the_data_paths_is_missing(path):
    content = {key: item for key, item in RUN.items() if key != path}
    assert mistake(content).startswith(f"config: {path}: missing; expected a file for train_path and for valid_path")


def test_test_data_can_be_left_out():
    content = {key: item for key, item in RUN.items() if key != "test_path"}
    assert load_config(content).datasets["data"].split.shares.keys() == {"train", "valid"}


def test_a_data_path_can_stand_under_its_key():
    content = {key: item for key, item in RUN.items() if key != "test_path"}
    content |= {"datasets": {"data": {"split": {"test": "c.xyz"}}}}
    assert load_config(content).datasets["data"].split.test == ["c.xyz"]
