import pytest

from forgefield.config import ModelConfig
from forgefield.config.model import SCRATCH


def test_a_foundation_model_has_its_own_shape():
    config = ModelConfig(foundation="models/small")
    assert set(config.model_dump()) == {"architecture", "foundation", "sha256", "head"}
    assert ModelConfig(**config.model_dump()) == config


def test_a_model_from_scratch_keeps_all_keys_of_its_shape():
    config = ModelConfig(elements=["O", "H", "C"], hidden_channels=32)
    assert config.elements == ["H", "C", "O"]
    assert config.model_dump().keys() >= SCRATCH
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
        ("architecture=mace2", ".architecture: expected 'mace', found 'mace2'; did you mean mace?"),
    ],
)
def test_impossible_combinations(mistake, override, message):
    assert mistake(f"models.small.{override}").startswith(f"config: models.small{message}")


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
