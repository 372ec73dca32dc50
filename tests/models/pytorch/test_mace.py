from dataclasses import replace

import numpy as np
import pytest
import torch

from forgefield.data.neighbors import neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.models.inference import predict
from forgefield.models.mace.names import RADIAL, REPULSION
from forgefield.models.mace.torch_reference import quiet_mace
from forgefield.models.pytorch.graphs import torch_graph
from forgefield.models.pytorch.mace import MaceModel


def chebyshev(potential):
    """The potential with another radial basis."""
    others = {name: value for name, value in potential.buffers.items() if not name.startswith(RADIAL)}
    config = potential.config | {"radial_type": "chebyshev"}
    return replace(potential, config=config, buffers=others | {RADIAL + "n": np.arange(1.0, 5.0)[None]})


def repulsive(potential):
    """The potential with a pair repulsion, its constants in float64."""
    with quiet_mace():
        from mace.modules.radial import ZBLBasis

        constants = ZBLBasis().double().state_dict()
    buffers = {REPULSION + name: value.numpy() for name, value in constants.items()}
    return replace(potential, config=potential.config | {"pair_repulsion": True}, buffers=potential.buffers | buffers)


@pytest.mark.parametrize("kind", [chebyshev, repulsive])
def test_energies_forces_and_virials_are_those_of_jax_whatever_the_default_precision(random_mace, structures, kind):
    potential = kind(random_mace())  # without energy shifts
    close = Structure(np.array([8, 1]), np.array([[0.0, 0.0, 0.0], [0.3, 0.4, 0.1]]))
    structures = [*structures, close]
    pairs = [neighbor_pairs(s, potential.cutoff) for s in structures]
    graph = torch_graph(structures, pairs, potential.elements, np.float64)
    assert torch.get_default_dtype() == torch.float32
    with quiet_mace():
        found = MaceModel(potential, torch.float64)(graph, virial=True)
    assert torch.get_default_dtype() == torch.float32
    expected = list(predict(potential, structures, wanted="virial"))
    assert_close(found.energy, [p.energy for p in expected])
    assert_close(found.forces, np.concatenate([p.forces for p in expected]))
    for virial, structure, prediction in zip(found.virial, structures, expected, strict=True):
        if prediction.stress is not None:
            assert_close(virial, -prediction.stress * structure.volume)


def assert_close(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=1e-11 * np.abs(expected).max())
