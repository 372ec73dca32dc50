"""The configurations beside the default one are valid, and so are the choices that they tell of."""

import re

import pytest

from forgefield.config import load_config


@pytest.fixture
def preset(root):
    return root / "config" / "md22_nanotube.yaml"


def test_pretrain(root):
    assert load_config(root / "config" / "pretrain.yaml").run_names == ["pretraining-mace-hcno-jax"]


def test_the_nanotube_needs_no_network(root, preset):
    config = load_config(preset)
    assert config.run_names == ["nanotube-hcno-gfn2-jax"]
    (source,) = config.datasets[config.dataset].source
    assert (root / source).is_file()
    assert (root / config.models[config.model].foundation / "weights.safetensors").is_file()


def test_the_nanotube_of_md22_is_the_choice_in_the_first_lines(preset):
    (words,) = re.findall(r"--config (dataset=.*)", preset.read_text())
    config = load_config(preset, words.split())
    assert config.run_names == ["md22-mace-mp-jax"]
    (source,) = config.datasets[config.dataset].source
    assert source.url.endswith("/md22_double-walled_nanotube.npz")
    assert config.models[config.model].foundation.endswith(".model")


@pytest.mark.parametrize("name", ["nanotube", "md22"])
def test_units_of_the_nanotube(preset, name):
    dataset = load_config(preset).datasets[name]
    assert (dataset.units.energy, dataset.units.length) == ("kcal/mol", "angstrom")
    assert (dataset.store.units.energy, dataset.store.units.length) == ("kJ/mol", "nm")


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_a_batch_of_the_nanotube_can_be_shared(preset, devices):
    assert load_config(preset, [f"devices={devices}"]).training.batch % devices == 0
