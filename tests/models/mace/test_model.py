"""The model as a function: its dtype, its derivatives at the edges of its domain, and what padding may change."""

import re

import jax
import numpy as np
import pytest
import torch
from comparison import by_jax, by_structure, evaluation, evaluation_with_gradient, packed

from forgefield.data.batching import Capacity
from forgefield.models.energy import energy_and_forces, energy_function
from forgefield.models.mace.names import weight_name
from forgefield.models.mace.torch_exchange import to_torch
from forgefield.models.mace.torch_reference import reference

# XLA computes 24 atoms by other products, with the rounding of others, than 26, 32 or 40
BATCH = Capacity(structures=8, atoms=32, pairs=96, neighbors=32)
MORE_ROWS, MORE_SLOTS = Capacity(11, 40, 128, 32), Capacity(11, 40, 128, 40)


@pytest.fixture(scope="module")
def evaluate(potential):
    return evaluation(potential)


@pytest.fixture(scope="module")
def loss_gradient(potential):
    """The gradient of a loss of energies and forces."""
    evaluate = evaluation_with_gradient(potential)
    return lambda graph: {name: np.asarray(g) for name, g in evaluate(potential.parameters, graph)[1].items()}


def test_gradients_are_finite_without_any_pair_and_zero_without_atoms(x64, potential, structures, loss_gradient):
    alone = loss_gradient(packed(structures[3:5], potential, BATCH))
    assert all(np.isfinite(g).all() for g in alone.values())
    assert (alone["interactions.0.linear.weight"] == 0).all()
    assert all((g == 0).all() for g in loss_gradient(packed([], potential, BATCH)).values())


def test_every_trained_weight_matters(x64, potential, structures, loss_gradient):
    gradient = loss_gradient(packed(structures, potential, BATCH))
    assert weight_name(0, 0, 3, 3) in gradient
    assert all(np.abs(g).max() > 0 for g in gradient.values())


@pytest.fixture
def padded(x64, potential, structures, evaluate):
    """A function that gives each quantity of each structure in a batch of some capacity and in a small one."""

    def both(capacity):
        wide, tight = (
            by_structure(evaluate(potential.parameters, packed(structures[:2], potential, c)), structures[:2])
            for c in (capacity, BATCH)
        )
        return [pair for quantities in zip(wide, tight, strict=True) for pair in zip(*quantities, strict=True)]

    return both


def test_padded_structures_atoms_and_pairs_change_no_bit(padded):
    """Sums over neighbors keep their length, so nothing is added in another order."""
    for found, expected in padded(MORE_ROWS):
        np.testing.assert_array_equal(found, expected)


def test_padded_neighbor_slots_only_change_the_order_of_sums(padded):
    for found, expected in padded(MORE_SLOTS):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("capacity", [MORE_ROWS, MORE_SLOTS], ids=["rows", "slots"])
def test_padding_only_changes_the_order_of_sums_over_atoms_in_gradients(
    x64, potential, structures, loss_gradient, capacity
):
    tight, wide = (loss_gradient(packed(structures[:2], potential, c)) for c in (BATCH, capacity))
    for name, expected in tight.items():
        np.testing.assert_allclose(wide[name], expected, rtol=0, atol=1e-12 * np.abs(expected).max(), err_msg=name)


def test_padding_has_no_energy(x64, potential, structures, evaluate):
    energies, forces, virials = evaluate(potential.parameters, packed(structures[:2], potential, BATCH))
    n_atoms = sum(map(len, structures[:2]))
    assert (np.asarray(energies[:2]) != 0).all()
    assert all((np.asarray(x) == 0).all() for x in (energies[2:], forces[n_atoms:], virials[2:]))


def test_float32_stays_float32(x64, potential, structures):
    evaluate = energy_and_forces(energy_function(potential))
    parameters = {k: np.asarray(v, np.float32) for k, v in potential.parameters.items()}
    jaxpr = jax.make_jaxpr(evaluate)(parameters, packed(structures, potential, dtype="float32"))
    assert not re.search(r"f64\[\d", str(jaxpr))  # scalars of weak type aside


def test_float32_agrees_with_mace_torch_in_float64(potential, structures):
    found = by_jax(potential, structures, "float32")
    module = to_torch(potential, torch.float64)
    for structure, energy, forces in zip(structures, found.energy, found.forces, strict=True):
        expected = reference(module, structure)
        np.testing.assert_allclose(forces, expected.forces, atol=1e-4)
        assert energy == pytest.approx(expected.energy, abs=1e-5 * len(structure))
