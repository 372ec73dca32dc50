import numpy as np
import pytest
import torch

from forgefield.config.model import ModelConfig
from forgefield.data.neighbors import neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.models.flashcart.exchange import initial_potential, to_flashcart
from forgefield.models.pytorch.flashcart import FlashcartModel
from forgefield.models.pytorch.graphs import torch_graph

# settings of a model
VARIANTS = {
    "default": {},
    "by element": {
        "element_agnostic_interaction": False,
        "n_element_interaction_features": 4,
        "element_agnostic_product": False,
    },
    "summed paths": {"path_reduced_product": True},
    "summed paths by element": {"path_reduced_product": True, "element_agnostic_product": False},
    "wide": {"l_max_hidden_feats": 2, "l_max_edge_attrs": 2, "n_interactions": 3, "correlation": 2},
    "recomputed": {"recompute_radial": True},
    "no products": {"correlation": 1, "nonlinearity": False, "layer_norm": False},
}
# of both elements, of one, and of one atom without neighbors
STRUCTURES = [
    Structure(np.array(numbers), np.random.default_rng(0).uniform(0.0, 3.0, (len(numbers), 3)))
    for numbers in ([8, 1, 1, 8, 1], [1, 1, 1], [8])
]


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradients_are_those_of_the_package(variant):
    settings = {"n_hidden_feats": 3, **VARIANTS[variant]}
    config = {"architecture": "flashcart", "elements": ["O", "H"], "r_max": 3.0, "flashcart": settings}
    potential = initial_potential(ModelConfig.model_validate(config))
    # what is zero at first must count too
    generator = np.random.default_rng(1)
    for name, value in potential.parameters.items():
        potential.parameters[name] = value + 0.1 * generator.normal(size=value.shape)
    fast, own = FlashcartModel(potential, torch.float64), FlashcartModel(potential, torch.float64)
    own.network = to_flashcart(potential, torch.float64)
    pairs = [neighbor_pairs(s, potential.cutoff) for s in STRUCTURES]
    graph = torch_graph(STRUCTURES, pairs, potential.elements, np.float64)
    (loss, gradients), (own_loss, own_gradients) = (loss_and_gradients(model, graph) for model in (fast, own))
    torch.testing.assert_close(loss, own_loss, rtol=1e-12, atol=0)
    for name, gradient in own_gradients.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-10, atol=1e-11, msg=name)


def loss_and_gradients(model, graph):
    predicted = model.train()(graph, virial=True)
    loss = predicted.energy.square().sum() + predicted.forces.square().sum() + predicted.virial.square().sum()
    params = model.potential_parameters()
    gradients = torch.autograd.grad(loss, params.values(), materialize_grads=True)
    return loss, dict(zip(params, gradients, strict=True))


def test_all_tensor_products_are_computed_as_matrix_products():
    config = {"architecture": "flashcart", "elements": ["H"], "r_max": 3.0}
    network = FlashcartModel(initial_potential(ModelConfig.model_validate(config)), torch.float32).network
    names = [type(i.tp).__name__ for i in network.interactions]
    names += [type(t).__name__ for layer in network.products for t in layer.tensor_products]
    assert names == ["Convolution"] * 2 + ["Product"] * 4
