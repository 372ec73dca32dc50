"""What holds for every potential, for several variants of MACE: symmetries and derivatives."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from comparison import by_structure, evaluation, packed

DENSITY = ("RealAgnosticDensityInteractionBlock", "RealAgnosticDensityResidualInteractionBlock")
GATED = ("RealAgnosticResidualNonLinearInteractionBlock",) * 2
VARIANTS = {
    "scalars": {},
    "vectors": {"hidden_l_max": (1, 0), "correlation": (2, 3)},
    "density": {"hidden_l_max": (2, 1), "interactions": DENSITY, "correlation": (2, 2)},
    "gated": {"hidden_l_max": (1, 0), "interactions": GATED, "correlation": (2, 2)},
}


@pytest.fixture(scope="module", params=VARIANTS)
def evaluate(request, make_potential):
    """A function that gives energies, forces and virials of structures, compiled once per variant."""
    potential = make_potential(**VARIANTS[request.param])
    compiled = evaluation(potential)

    def results(structures):
        with jax.enable_x64(True):
            return by_structure(compiled(potential.parameters, packed(structures, potential)), structures)

    return results


@pytest.fixture(scope="module")
def results(evaluate, structures):
    return evaluate(structures)


def moved(structures, positions=lambda s: s.positions, cell=lambda s: s.cell):
    return [replace(s, positions=positions(s), cell=cell(s)) for s in structures]


def assert_close(found, expected):
    """Relative to the largest value in all structures, whose rounding all share."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * max(np.abs(x).max() for x in expected))


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["rotation", "reflection"])
def test_rotation_and_reflection(evaluate, structures, results, sign):
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    turn *= sign * np.linalg.det(turn)
    turned = evaluate(moved(structures, lambda s: s.positions @ turn.T, lambda s: s.cell @ turn.T))
    assert_close(turned.energy, results.energy)
    assert_close(turned.forces, [forces @ turn.T for forces in results.forces])
    assert_close(turned.virial, [turn @ virial @ turn.T for virial in results.virial])


def test_permutation_of_atoms_and_of_structures(evaluate, structures, results):
    orders = [np.random.default_rng(0).permutation(len(s)) for s in structures]
    shuffled = [
        replace(s, numbers=s.numbers[o], positions=s.positions[o]) for s, o in zip(structures, orders, strict=True)
    ]
    found = evaluate(shuffled[::-1])
    assert_close(found.energy[::-1], results.energy)
    assert_close(found.forces[::-1], [forces[order] for forces, order in zip(results.forces, orders, strict=True)])
    assert_close(found.virial[::-1], results.virial)


def test_lattice_translation_of_single_atoms(evaluate, structures, results):
    generator = np.random.default_rng(0)
    shifted = moved(structures, lambda s: s.positions + (generator.integers(-2, 3, (len(s), 3)) * s.pbc) @ s.cell)
    assert any((a.positions != b.positions).any() for a, b in zip(shifted, structures, strict=True))
    found = evaluate(shifted)
    for quantity in ("energy", "forces", "virial"):
        assert_close(getattr(found, quantity), getattr(results, quantity))


def test_forces_are_the_derivative_of_the_energy(evaluate, structures, results):
    generator = np.random.default_rng(0)
    directions = [generator.normal(size=s.positions.shape) for s in structures]

    def energies(step):
        return evaluate(
            [replace(s, positions=s.positions + step * d) for s, d in zip(structures, directions, strict=True)]
        ).energy

    analytical = [-np.sum(forces * d) for forces, d in zip(results.forces, directions, strict=True)]
    np.testing.assert_allclose(slope(energies), analytical, rtol=1e-7, atol=1e-8 * np.abs(analytical).max())


def test_virial_is_the_derivative_of_the_energy_by_strain(evaluate, structures, results):
    strain = np.random.default_rng(0).normal(size=(3, 3)) / 5
    strain += strain.T

    def energies(step):
        matrix = np.eye(3) + step * strain
        return evaluate(moved(structures, lambda s: s.positions @ matrix, lambda s: s.cell @ matrix)).energy

    analytical = [-np.sum(virial * strain) for virial in results.virial]
    np.testing.assert_allclose(slope(energies), analytical, rtol=1e-7, atol=1e-8 * np.abs(analytical).max())


def slope(function, step=1e-3):
    """Fourth-order central difference at 0."""
    near, far = (np.subtract(function(h), function(-h)) / (2 * h) for h in (step, 2 * step))
    return (4 * near - far) / 3
