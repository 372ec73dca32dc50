import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from forgefield.data.batching import Capacity, needed_capacity, pack_graph
from forgefield.data.neighbors import neighbor_pairs
from forgefield.models.energy import energy_and_forces, energy_function
from forgefield.models.inference import Predictor
from forgefield.models.mace.names import weight_name
from forgefield.models.mace.torch_exchange import from_torch, to_torch
from forgefield.models.mace.torch_reference import load_pickle, quiet_mace, reference, torch_inputs

AGNOSTIC, RESIDUAL = "RealAgnosticInteractionBlock", "RealAgnosticResidualInteractionBlock"
BATCH = Capacity(structures=8, atoms=24, pairs=96, neighbors=32)
SHAPES = {
    "l1-correlation1": {"l_max": 1, "correlation": (1, 1), "interactions": (RESIDUAL, RESIDUAL)},
    "l2-correlation2": {"l_max": 2, "correlation": (2, 2), "interactions": (AGNOSTIC, RESIDUAL)},
    "l3-correlation3": {"l_max": 3, "correlation": (3, 3), "interactions": (RESIDUAL, RESIDUAL)},
    "l2-mixed-three-layers": {"correlation": (1, 3, 2), "interactions": (AGNOSTIC, RESIDUAL, RESIDUAL)},
    "one-layer": {"correlation": (3,), "interactions": (AGNOSTIC,)},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_random_models_agree_with_mace_torch_in_float64(make_potential, structures, shape):
    potential = make_potential(**SHAPES[shape])
    assert_parity(potential, to_torch(potential, torch.float64), structures, relative=1e-9)


def test_float32_agrees_with_mace_torch_in_float64(make_potential, structures):
    potential = make_potential()
    ours = list(Predictor(potential, precision="float32")(structures))
    module = to_torch(potential, torch.float64)
    for structure, prediction in zip(structures, ours, strict=True):
        np.testing.assert_allclose(prediction.forces, reference(module, structure).forces, atol=1e-4)
        assert prediction.energy == pytest.approx(reference(module, structure).energy, abs=1e-5 * len(structure))


@pytest.mark.parametrize("name", ["mace_spice2022", "mace_solvent_xtb", "mace_solvent_xtb_small"])
def test_public_models_agree_with_mace_torch(shared_data, structures, name):
    module = load_pickle(shared_data / "models" / f"{name}.model")
    potential = from_torch(module)
    module.double()
    assert_parity(potential, module, structures, relative=1e-9)
    for structure, prediction in zip(structures, Predictor(potential, precision="float32")(structures), strict=True):
        forces = reference(module, structure).forces
        # some structures are squeezed to 40 eV/Å, where float32 rounds at a proportionally larger size
        np.testing.assert_allclose(prediction.forces, forces, atol=1e-4 * max(1.0, np.abs(forces).max() / 10))


def assert_parity(potential, module, structures, relative):
    """Energies without shifts, forces and virials of all structures against mace-torch."""
    bare = replace(potential, energy_shifts=dict.fromkeys(potential.elements, 0.0))
    ours = list(Predictor(bare, virial=True)(structures))
    theirs = [reference(module, structure) for structure in structures]
    compared = {
        "energy": ([p.energy for p in ours], [r.energy for r in theirs]),
        "forces": (np.concatenate([p.forces for p in ours]), np.concatenate([r.forces for r in theirs])),
        "virial": zip(
            *[
                (-p.stress * s.volume, r.virial)
                for p, s, r in zip(ours, structures, theirs, strict=True)
                if p.stress is not None
            ],
            strict=True,
        ),
    }
    for what, (mine, expected) in compared.items():
        mine, expected = np.array(mine), np.array(expected)
        np.testing.assert_allclose(mine, expected, rtol=0, atol=relative * np.abs(expected).max(), err_msg=what)


def test_parameter_gradient_of_a_force_loss_agrees_with_mace_torch(x64, potential, structures, loss_gradient):
    ours = loss_gradient(potential.parameters, packed(structures, potential))
    module = to_torch(potential, torch.float64)
    with quiet_mace():
        for structure in structures:
            output = module(torch_inputs(module, structure), training=True)
            (output["interaction_energy"].square().sum() + output["forces"].square().sum()).backward()
    for name, parameter in module.named_parameters():
        if parameter.numel():
            expected = parameter.grad.numpy()
            np.testing.assert_allclose(ours[name], expected, rtol=0, atol=1e-9 * np.abs(expected).max(), err_msg=name)


@pytest.fixture(scope="module")
def loss_gradient(potential):
    """The gradient by parameters of the sum of squared energies and forces."""
    evaluate = energy_and_forces(energy_function(potential))

    def loss(parameters, graph):
        energies, forces = evaluate(parameters, graph)
        return jnp.sum(energies**2) + jnp.sum(forces**2)

    return jax.jit(jax.grad(loss))


def packed(structures, potential, capacity=BATCH):
    pairs = [neighbor_pairs(s, potential.cutoff) for s in structures]
    assert capacity.holds(needed_capacity(structures, pairs))
    return pack_graph(structures, pairs, potential.elements, potential.cutoff, capacity)


def test_gradients_are_finite_without_any_pair_and_zero_without_atoms(x64, potential, structures, loss_gradient):
    alone = loss_gradient(potential.parameters, packed(structures[3:5], potential))
    assert all(np.isfinite(g).all() for g in alone.values())
    assert (np.asarray(alone["interactions.0.linear.weight"]) == 0).all()
    empty = loss_gradient(potential.parameters, packed([], potential))
    assert all((np.asarray(g) == 0).all() for g in empty.values())


def test_padding_changes_nothing(x64, potential, structures, loss_gradient):
    tight = loss_gradient(potential.parameters, packed(structures[:2], potential))
    wide = loss_gradient(potential.parameters, packed(structures[:2], potential, Capacity(11, 32, 128, 40)))
    for name in tight:
        np.testing.assert_allclose(tight[name], wide[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_padding_has_no_energy(x64, potential, structures):
    energies = jax.jit(energy_function(potential))(potential.parameters, packed(structures[:2], potential))
    assert (np.asarray(energies[:2]) != 0).all()
    assert (np.asarray(energies[2:]) == 0).all()


def test_float32_stays_float32(x64, potential, structures):
    evaluate = energy_and_forces(energy_function(potential))
    parameters = {k: np.asarray(v, np.float32) for k, v in potential.parameters.items()}
    graph = packed(structures, potential)
    graph = graph._replace(positions=graph.positions.astype(np.float32), pair_shift=graph.pair_shift.astype(np.float32))
    jaxpr = jax.make_jaxpr(evaluate)(
        parameters,
        graph._replace(
            atom_mask=graph.atom_mask.astype(np.float32), neighbor_sign=graph.neighbor_sign.astype(np.float32)
        ),
    )
    assert not re.search(r"f64\[\d", str(jaxpr))  # scalars of weak type aside


def test_every_trained_weight_matters(x64, potential, structures, loss_gradient):
    gradient = loss_gradient(potential.parameters, packed(structures, potential))
    assert weight_name(0, 0, 3, 3) in gradient
    assert all(np.abs(g).max() > 0 for g in gradient.values())
