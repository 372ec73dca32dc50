"""Every variant against mace-torch in float64: energies, forces, virials and the parameter gradient of a loss."""

import numpy as np
import pytest
import torch
from comparison import differences, gradient_by_jax, gradient_by_mace_torch, gradient_difference

from forgefield.data.structures import Structure
from forgefield.models.mace.torch_exchange import from_torch

TOLERANCE = 1e-10


@pytest.fixture(scope="module")
def surroundings(structures):
    """The structures that all tests of models share, and a pair so close that a pair repulsion shows."""
    close = Structure(np.array([8, 1]), np.array([[0.0, 0.0, 0.0], [0.3, 0.4, 0.1]]), source_index=len(structures))
    return [*structures, close]


def test_variant(build_mace, variant, surroundings, record_property):
    module = build_mace(dtype=torch.float64, **variant)
    with torch.no_grad():  # new biases are zero, new scales one
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    found, gradient = gradient_by_jax(from_torch(module), surroundings)
    expected, expected_gradient = gradient_by_mace_torch(module, surroundings)
    relative = differences(found, expected) | {"gradient": gradient_difference(gradient, expected_gradient)}
    record_property("relative differences", relative)
    assert max(relative.values()) < TOLERANCE, relative
