from dataclasses import replace

import numpy as np
import pytest
import torch
from flashcart.model.flashcart import FlashCartPotential

from forgefield.config.model import ModelConfig
from forgefield.errors import UserError
from forgefield.models.flashcart.exchange import from_flashcart, initial_potential, to_flashcart
from forgefield.models.potential import load_potential, save_potential

SMALL = {"n_hidden_feats": 4, "l_max_edge_attrs": 2, "l_max_hidden_feats": 1}


def config(**changes):
    return ModelConfig(**{"architecture": "flashcart", "elements": ["O", "H"], "flashcart": SMALL} | changes)


def test_a_checkpoint_returns_from_the_files_with_the_same_bits(save_flashcart, tmp_path):
    module = FlashCartPotential.from_checkpoint(save_flashcart(tmp_path / "theirs", elements=("O", "H")))
    potential = from_flashcart(module, pretrained=True, source={})
    assert potential.elements == (8, 1)  # the order of the checkpoint
    assert potential.energy_shifts == {8: -10.0, 1: -500.0}
    save_potential(potential, tmp_path / "ours")
    again = to_flashcart(load_potential(tmp_path / "ours"), torch.float32)
    assert again.to_model_config() | {"atomic_shifts": None} == module.to_model_config()
    for name, tensor in module.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


def test_a_model_from_scratch_has_flashcarts_own_initial_parameters():
    potential = initial_potential(config(seed=3))
    assert (potential.elements, potential.pretrained, potential.cutoff) == ((1, 8), False, 5.0)
    before = torch.get_rng_state()
    torch.manual_seed(3)
    torch.set_default_dtype(torch.float64)
    try:
        expected = FlashCartPotential(elements=["H", "O"], r_max=5.0, **config().flashcart.model_dump())
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_rng_state(before)
    assert potential.parameters.keys() == dict(expected.named_parameters()).keys()
    for name, parameter in expected.named_parameters():
        np.testing.assert_array_equal(potential.parameters[name], parameter.detach().numpy())
    other = initial_potential(config(seed=4))
    assert not np.array_equal(other.parameters["embedding.weight"], potential.parameters["embedding.weight"])


def test_the_random_numbers_and_the_default_precision_of_the_caller_stay():
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    initial_potential(config())
    assert torch.equal(torch.rand(2), expected)
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("change", ["lost", "unknown", "shape"])
def test_arrays_of_another_model_are_named(change):
    potential = initial_potential(config())
    weight = potential.parameters["embedding.weight"]
    others = {k: v for k, v in potential.parameters.items() if k != "embedding.weight"}
    changed, message = {
        "lost": (others, "embedding.weight is missing"),
        "unknown": (dict(potential.parameters) | {"more": weight}, "more is unknown to models of these settings"),
        "shape": (others | {"embedding.weight": weight[:1]}, r"embedding.weight has shape \(1, 4\), expected \(2, 4\)"),
    }[change]
    with pytest.raises(UserError, match=message):
        to_flashcart(replace(potential, parameters=changed), torch.float64)


def test_settings_that_flashcart_cannot_build():
    with pytest.raises(UserError, match=r"flashcart has no model of these settings: .*l_max"):
        initial_potential(config(flashcart={"l_max_edge_attrs": 20, "n_hidden_feats": 1}))
