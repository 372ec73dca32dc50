import jax.numpy as jnp
import numpy as np
import pytest

from forgefield.models.mace.contraction import products, symmetric_contraction
from forgefield.models.mace.covariants import coupling_tensor
from forgefield.models.mace.names import buffer_name, weight_name
from forgefield.models.mace.settings import MaceSettings

SETTINGS = {"r_max": 3.0, "hidden_channels": 4, "n_bessel": 4, "polynomial_cutoff": 5, "radial_mlp": (8,)}


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize(("l_max", "correlation", "degree"), [(2, 3, 0), (3, 3, 1), (2, 3, 2), (1, 1, 1), (1, 4, 1)])
def test_contraction_is_that_of_the_dense_tensors(x64, l_max, correlation, degree, rounded):
    settings = MaceSettings(
        **SETTINGS,
        l_max=l_max,
        correlation=(correlation,),
        interactions=("RealAgnosticInteractionBlock",),
        hidden_l_max=(degree,),
        mlp_channels=1,
    )
    buffers, parameters, components, elements = random_inputs(l_max, correlation, degree, rounded)
    product = products(settings.layers[0], buffers)[degree]
    ours = np.array(symmetric_contraction(product, parameters, components, elements))
    expected = dense_contraction(buffers, parameters, np.array(components), elements, degree, correlation)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


def random_inputs(l_max, correlation, degree, rounded):
    generator = np.random.default_rng(0)
    buffers, parameters = {}, {}
    for lower in range(degree + 1):
        for order in range(1, correlation + 1):
            tensor = coupling_tensor(l_max, order, lower)
            tensor = tensor.astype(np.float32).astype(np.float64) if rounded else tensor
            buffers[buffer_name(0, lower, order)] = tensor
            parameters[weight_name(0, lower, order, correlation)] = generator.normal(size=(2, tensor.shape[-1], 4))
    components = list(generator.normal(size=((l_max + 1) ** 2, 5, 4)))
    return buffers, parameters, [jnp.asarray(c) for c in components], np.eye(2)[[0, 1, 1, 0, 1]]


def dense_contraction(buffers, parameters, components, elements, degree, correlation):
    """Each U tensor contracted with the components on all its axes: (2L + 1, N, C)."""
    total = 0.0
    for order in range(1, correlation + 1):
        tensor = buffers[buffer_name(0, degree, order)]
        value = np.einsum(
            "m...k,nkc->m...nc",
            tensor if degree else tensor[None],
            np.einsum("nz,zkc->nkc", elements, parameters[weight_name(0, degree, order, correlation)]),
        )
        for _ in range(order):
            value = np.einsum("ma...nc,anc->m...nc", value, components)
        total = total + value
    return total
