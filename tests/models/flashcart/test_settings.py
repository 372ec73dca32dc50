import inspect
import json

import pytest
from flashcart.model.flashcart import FlashCartPotential
from flashcart.utils.config import load_config

from forgefield.config.architectures import FlashcartConfig
from forgefield.config.model import ModelConfig
from forgefield.errors import UserError
from forgefield.models.flashcart.exchange import initial_potential
from forgefield.models.potential import load_potential, save_potential

# every potential has the first, the statistics stage makes the others
ELSEWHERE = {"elements", "r_max", "avg_neighbors", "atomic_shifts", "fit_atomic_shifts"}


def test_the_keys_are_those_of_flashcart_with_the_defaults_of_its_training():
    known = set(inspect.signature(FlashCartPotential).parameters)
    assert set(FlashcartConfig.model_fields) == known - ELSEWHERE
    theirs = load_config(required=[])
    for key, value in FlashcartConfig().model_dump().items():
        assert value == theirs.get(key, False), key


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_radials": 1}, r"model\.json: config\.n_radials: unknown key; did you mean config\.n_radial\?"),
        ({"avg_neighbors": 0}, r"model\.json: config\.avg_neighbors: expected a number above 0"),
        ({"r_min": 7.0}, r"model\.json: cutoff is 4\.0, but config\.r_min is 7\.0"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, changes, message):
    small = {"n_hidden_feats": 2, "l_max_edge_attrs": 1, "l_max_hidden_feats": 0}
    config = ModelConfig(architecture="flashcart", elements=["H"], r_max=4.0, flashcart=small)
    save_potential(initial_potential(config), tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"config": content["config"] | changes}))
    with pytest.raises(UserError, match=message):
        load_potential(tmp_path / "model")
