import json
import re

import pytest

from forgefield.config import ModelConfig
from forgefield.config.model import OWN, SCRATCH


def test_a_foundation_model_has_its_own_shape():
    config = ModelConfig(foundation="models/small")
    assert set(config.model_dump()) == {"architecture", "foundation", "sha256", "head"}
    assert ModelConfig(**config.model_dump()) == config


def test_a_model_from_scratch_keeps_all_keys_of_its_shape():
    config = ModelConfig(elements=["O", "H", "C"], hidden_channels=32)
    assert config.elements == ["H", "C", "O"]
    assert config.model_dump().keys() >= SCRATCH - {"flashcart", "python"}
    assert ModelConfig(**config.model_dump()) == config


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("r_max=5", ": foundation and r_max are both given"),
        ("elements=[H]", ": foundation and elements are both given"),
        ("foundation=null", ": foundation is missing; give a pretrained model, or elements to train from scratch"),
        ("elements=[Hx]", ".elements: expected chemical symbols such as H or Cl, found 'Hx'"),
        ("elements=[X]", ".elements: expected chemical symbols such as H or Cl, found 'X'"),
        ("elements=[H, H]", ".elements: an element is listed twice"),
        (
            "architecture=mace2",
            ".architecture: expected 'mace', 'flashcart' or 'python', found 'mace2'",
        ),
    ],
)
def test_impossible_combinations(mistake, override, message):
    assert mistake(f"models.small.{override}").startswith(f"config: models.small{message}")


OTHERS = {"flashcart": {"flashcart": {"n_hidden_feats": 4}}, "python": {"python": {"object": "pair:Morse"}}}


@pytest.mark.parametrize("architecture", OTHERS)
def test_a_model_of_another_architecture_keeps_the_keys_of_its_shape(architecture):
    config = ModelConfig(architecture=architecture, elements=["H"], **OTHERS[architecture])
    dumped = config.model_dump()
    assert not dumped.keys() & OWN["mace"]
    assert set(dumped) >= {"elements", "r_max", "seed", architecture}
    assert ModelConfig(**dumped) == config
    pretrained = ModelConfig(architecture=architecture, foundation="a/directory")
    assert set(pretrained.model_dump()) == {"architecture", "foundation", "sha256"}
    assert ModelConfig(**pretrained.model_dump()) == pretrained


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "{architecture: flashcart, elements: [H], hidden_channels: 8}",
            ": hidden_channels is a key of architecture mace",
        ),
        (
            "{architecture: flashcart, foundation: x, head: dft}",
            ": head is a key of architecture mace, but architecture",
        ),
        ("{elements: [H], flashcart: {n_radial: 3}}", ": flashcart is a key of architecture flashcart, but .* is mace"),
        (
            "{architecture: flashcart, elements: [H], flashcart: {n_radials: 3}}",
            ".flashcart.n_radials: unknown key; did",
        ),
        ("{architecture: flashcart, elements: [H], flashcart: {r_min: 9}}", ": flashcart.r_min is 9.0, expected less"),
        (
            "{architecture: flashcart, elements: [H], flashcart: {element_agnostic_interaction: false}}",
            ".flashcart: n_element_interaction_features is missing, which element_agnostic_interaction: false needs",
        ),
        ("{architecture: flashcart, foundation: x, flashcart: {}}", ": foundation and flashcart are both given"),
        ("{architecture: python, elements: [H]}", ": python.object is missing; write MODULE:OBJECT"),
        (
            "{architecture: python, elements: [H], python: {object: pair.Morse}}",
            ".python.object: expected MODULE:OBJ",
        ),
        (
            "{architecture: python, elements: [H], python: {object: 'a:B', config: {r_max: 3}}}",
            ".python.config: r_max is given to build by the model's own key r_max; write it there",
        ),
    ],
)
def test_mistakes_of_other_architectures(mistake, entry, message):
    found = mistake(f"models.small={entry}", "backend=fabric")
    assert re.match(f"config: models.small{message}", found), found
    assert "\n" not in found


@pytest.mark.parametrize("architecture", OTHERS)
def test_jax_trains_mace_only(mistake, architecture):
    entry = {"architecture": architecture, "foundation": "x"}
    found = mistake(f"models.small={json.dumps(entry)}")
    assert f"backend: jax trains architecture mace, but models.small.architecture is {architecture}; write b" in found


def test_features_reach_no_higher_degree_than_harmonics(mistake):
    found = mistake("models.small={elements: [H], hidden_l_max: 3, l_max: 2}")
    assert "models.small: hidden_l_max is 3, expected at most l_max, which is 2" in found


@pytest.mark.parametrize(("key", "value"), [("sha256", "a" * 64), ("head", "dft")])
def test_a_key_of_foundation_models_without_foundation(mistake, key, value):
    found = mistake(f"models.small={{elements: [H], {key}: {value}}}")
    assert f"models.small: {key} is given without foundation" in found


def test_a_pickled_foundation_without_sha256_is_left_to_the_import(load):
    assert load("models.small.foundation=small.model").models["small"].sha256 is None


def test_a_checksum_may_be_in_upper_case():
    assert ModelConfig(foundation="small.model", sha256="AB" * 32).sha256 == "ab" * 32
