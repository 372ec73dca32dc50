import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forgefield.data.batching import needed_capacity, pack_graph
from forgefield.data.neighbors import neighbor_pairs
from forgefield.models.energy import energy_and_forces, energy_forces_virial, energy_function
from forgefield.models.mace.contraction import products, symmetric_contraction
from forgefield.models.mace.covariants import coupling_tensor
from forgefield.models.mace.names import buffer_name, weight_name
from forgefield.models.mace.settings import MaceSettings

MODELS = {
    "scalars": {"correlation": (3,), "interactions": ("RealAgnosticInteractionBlock",)},
    "vectors": {"l_max": 1, "correlation": (2, 2), "hidden_l_max": (1, 0)},
    "narrow-sources-and-one-product": {
        "l_max": 1,
        "correlation": (1, 1),
        "hidden_l_max": (1, 1),
        "interactions": ("RealAgnosticResidualNonLinearInteractionBlock",) * 2,
        "source_channels": (3, 3),
        "source_l_max": (0, 1),
        "agnostic_product": True,
        "apply_cutoff": False,
    },
}


@pytest.mark.parametrize("model", MODELS)
def test_energies_forces_and_parameter_gradients_are_those_of_the_reference(x64, make_potential, structures, model):
    potential = make_potential(**MODELS[model])
    pairs = [neighbor_pairs(structure, potential.cutoff) for structure in structures]
    capacity = needed_capacity(structures, pairs)
    graph = pack_graph(structures, pairs, potential.elements, potential.cutoff, capacity)

    def differentiate(kernels):
        evaluate = energy_and_forces(energy_function(potential, kernels))

        def loss(parameters):
            energies, forces = evaluate(parameters, graph)
            return jnp.sum(energies**2) + jnp.sum(forces**2), (energies, forces)

        gradient, (energies, forces) = jax.jit(jax.grad(loss, has_aux=True))(potential.parameters)
        return {**gradient, "energies": energies, "forces": forces}

    expected, found = differentiate("reference"), differentiate("cuequivariance")
    for name, value in expected.items():
        largest = np.abs(value).max(initial=0.0)
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-12 * largest, err_msg=name)


def test_float32_and_virials(make_potential, structures):
    potential = make_potential(**MODELS["scalars"])
    parameters = {name: np.asarray(value, np.float32) for name, value in potential.parameters.items()}
    pairs = [neighbor_pairs(structure, potential.cutoff) for structure in structures]
    capacity = needed_capacity(structures, pairs)
    graph = pack_graph(structures, pairs, potential.elements, potential.cutoff, capacity, np.float32)
    results = [
        jax.jit(energy_forces_virial(energy_function(potential, kernels)))(parameters, graph)
        for kernels in ("reference", "cuequivariance")
    ]
    for expected, found in zip(*results, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(("l_max", "correlation", "degree"), [(1, 1, 1), (2, 3, 0), (1, 4, 1), (1, 1, 2)])
def test_contraction_by_rounded_and_empty_tensors(x64, l_max, correlation, degree):
    """What rounding adds is not lost. Where no product gives a degree, mace-torch has one path of zeros."""
    settings = MaceSettings(
        r_max=3.0,
        hidden_channels=4,
        n_bessel=4,
        polynomial_cutoff=5,
        radial_mlp=(8,),
        mlp_channels=1,
        l_max=l_max,
        correlation=(correlation,),
        interactions=("RealAgnosticInteractionBlock",),
        hidden_l_max=(degree,),
    )
    generator = np.random.default_rng(0)
    buffers, parameters = {}, {}
    for lower in range(degree + 1):
        for order in range(1, correlation + 1):
            tensor = coupling_tensor(l_max, order, lower).astype(np.float32)
            tensor = tensor if tensor.shape[-1] else np.zeros((*tensor.shape[:-1], 1), np.float32)
            buffers[buffer_name(0, lower, order)] = tensor
            parameters[weight_name(0, lower, order, correlation)] = generator.normal(size=(2, tensor.shape[-1], 4))
    components = list(generator.normal(size=((l_max + 1) ** 2, 5, 4)))
    elements = np.eye(2)[[0, 1, 1, 0, 1]]
    product = products(settings.layers[0], buffers)[degree]
    expected, found = (
        np.array(symmetric_contraction(product._replace(kernels=kernels), parameters, components, elements))
        for kernels in ("reference", "cuequivariance")
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * np.abs(expected).max())
