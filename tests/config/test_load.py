import json
import subprocess
import sys
from collections import OrderedDict

import pytest

from forgefield.config import load_config
from forgefield.errors import UserError


@pytest.fixture
def config_file(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return path


def test_file_text_and_mapping_give_the_same(config_file, text, load):
    content = json.loads(load().model_dump_json())
    assert load_config(config_file) == load_config(str(config_file)) == load_config(text)
    assert load_config(content) == load_config(json.dumps(content)) == load_config(text)


def test_what_snakemake_passes_on(text):
    """Nested ordered dictionaries, and text where the command line was not read as numbers."""
    content = OrderedDict(
        dataset="ethanol",
        model="small",
        datasets=OrderedDict(ethanol=OrderedDict(source="ethanol.npz")),
        models=OrderedDict(small=OrderedDict(foundation="models/small")),
        training=OrderedDict(epochs="20", lr="1e-4", drop_last="true"),
        devices="2",
    )
    config = load_config(content)
    assert (config.training.epochs, config.training.lr, config.training.drop_last) == (20, 1e-4, True)
    assert config.devices == 2


def test_loading_leaves_the_mapping_alone():
    content = {"datasets": {"a": {"source": "a.npz"}}}
    load_config(content, ["datasets.a.source=b.npz", "devices=2"])
    assert content == {"datasets": {"a": {"source": "a.npz"}}}


def test_overrides_are_dotted_keys_and_yaml_values(load):
    config = load("training.lr=1e-4", "training.ema=null", "training.schedule={kind: constant}", "devices=2")
    assert config.training.lr == 1e-4
    assert config.training.ema is None
    assert config.training.schedule.kind == "constant"
    assert config.devices == 2


@pytest.mark.parametrize("override", ["training.lr", "=1", "training..lr=1"])
def test_override_without_key_or_value(mistake, override):
    assert mistake(override) == f"'{override}': expected KEY=VALUE, such as training.lr=1e-3"


def test_override_through_a_value(mistake):
    assert "dataset is not a section" in mistake("dataset.source=x")


def test_one_file_for_each_dataset_and_model(config_file):
    for kind, entry in (("datasets", "source: benzene.npz"), ("models", "foundation: models/large")):
        (config_file.parent / kind).mkdir()
        (config_file.parent / kind / "extra.yaml").write_text(entry)
    config = load_config(config_file, ["dataset=extra", "model=extra"])
    assert config.datasets["extra"].source == ["benzene.npz"]
    assert config.run_names == ["extra-extra-jax"]
    assert "extra" in load_config({}, folder=config_file.parent).datasets


def test_a_name_defined_twice(config_file):
    (config_file.parent / "datasets").mkdir()
    (config_file.parent / "datasets" / "ethanol.yaml").write_text("source: other.npz")
    with pytest.raises(UserError, match=r"ethanol\.yaml: datasets\.ethanol is already defined in .*config\.yaml"):
        load_config(config_file)


def test_mistakes_in_a_file_name_the_file(config_file):
    with pytest.raises(UserError, match=r"config\.yaml: training\.lrr: unknown key"):
        load_config(config_file, ["training.lrr=1"])
    with pytest.raises(UserError, match=r"config\.yaml: dataset: datasets has no entry 'methanol'"):
        load_config(config_file, ["dataset=methanol"])


def test_missing_file():
    with pytest.raises(UserError, match=r"nowhere/config\.yaml: no such file"):
        load_config("nowhere/config.yaml")


@pytest.mark.parametrize(("content", "found"), [("", "nothing"), ("- a\n- b\n", r"\['a', 'b'\]"), ("word", "'word'")])
def test_a_file_without_keys(tmp_path, content, found):
    path = tmp_path / "config.yaml"
    path.write_text(content)
    with pytest.raises(UserError, match=f"expected keys such as dataset and model, found {found}"):
        load_config(path)


def test_the_default_configuration_is_valid(root):
    config = load_config(root / "config" / "config.yaml")
    assert config.run_names == ["glycolaldehyde-hcno-gfn2-jax"]
    assert config.run(config.run_names[0]).training.lr > 0
    assert load_config(root / "config" / "config.yaml", ["backend=fabric"]).run_names[0].endswith("-fabric")
    assert len((root / "config" / "config.yaml").read_text().splitlines()) < 50


def test_no_engine_is_loaded():
    code = "import sys, forgefield.config; print({'jax', 'torch', 'mpi4py'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
