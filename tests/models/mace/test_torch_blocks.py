import numpy as np
import pytest
import torch

from forgefield.data.structures import Structure
from forgefield.models.mace.torch_blocks import ScalarConvolution, speed_up
from forgefield.models.mace.torch_exchange import to_torch
from forgefield.models.mace.torch_reference import quiet_mace, torch_inputs

RESIDUAL = "RealAgnosticResidualInteractionBlock"
# settings of a model -> whether its layers convolve scalars
MODELS = {
    "three orders": (
        {"hidden_channels": 3, "l_max": 3, "correlation": (3, 3), "interactions": (RESIDUAL,) * 2},
        [True] * 2,
    ),
    "one, two and four orders": (
        {"correlation": (1, 2, 4), "interactions": (RESIDUAL,) * 3, "l_max": 2},
        [True] * 3,
    ),
    "vectors": (
        {
            "hidden_channels": 3,
            "hidden_l_max": (1, 0),
            "correlation": (3, 3),
            "interactions": (RESIDUAL,) * 2,
            "l_max": 2,
        },
        [True, False],
    ),
    "densities": ({"interactions": ("RealAgnosticDensityInteractionBlock",), "correlation": (2,)}, [True]),
}

# of both elements, of one, and of one atom without neighbors
STRUCTURES = [
    Structure(np.array(numbers), np.random.default_rng(0).uniform(0.0, 3.0, (len(numbers), 3)))
    for numbers in ([8, 1, 1, 8, 1], [1, 1, 1], [8])
]


@pytest.mark.parametrize("name", MODELS)
def test_energies_forces_and_gradients_are_mace_torchs(random_mace, name):
    settings, scalars = MODELS[name]
    potential = random_mace((1, 8), seed=2, **settings)
    found = []
    for fast in (False, True):
        with quiet_mace():
            network = to_torch(potential, torch.float64)
        if fast:
            speed_up(network)
            assert [isinstance(i.conv_tp, ScalarConvolution) for i in network.interactions] == scalars
        output = [network(torch_inputs(network, s), training=True) for s in STRUCTURES]
        loss = sum(o["interaction_energy"].sum() + o["forces"].square().sum() for o in output)
        params = dict(network.named_parameters())
        gradients = torch.autograd.grad(loss, params.values(), allow_unused=True)
        found.append(([o["forces"] for o in output], loss, dict(zip(params, gradients, strict=True))))
    (forces, loss, gradients), (own_forces, own_loss, own_gradients) = found
    torch.testing.assert_close(own_loss, loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(own_forces, forces, rtol=1e-12, atol=1e-12)
    used = {name: g for name, g in gradients.items() if g is not None and g.numel()}
    for name, gradient in used.items():
        torch.testing.assert_close(own_gradients[name], gradient, rtol=1e-10, atol=1e-12, msg=name)
