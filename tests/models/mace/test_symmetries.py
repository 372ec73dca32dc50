"""What holds for every potential, for several variants of MACE: symmetries, derivatives, padding."""

from dataclasses import replace

import numpy as np
import pytest

from forgefield.models.inference import predict

DENSITY = ("RealAgnosticDensityInteractionBlock", "RealAgnosticDensityResidualInteractionBlock")
GATED = ("RealAgnosticResidualNonLinearInteractionBlock",) * 2
VARIANTS = {
    "scalars": {},
    "vectors": {"hidden_l_max": (1, 0), "correlation": (2, 3)},
    "density": {"hidden_l_max": (2, 1), "interactions": DENSITY, "correlation": (2, 2)},
    "gated": {"hidden_l_max": (1, 0), "interactions": GATED, "correlation": (2, 2)},
}


@pytest.fixture(scope="module", params=VARIANTS)
def potential(request, make_potential):
    return make_potential(**VARIANTS[request.param])


@pytest.fixture(scope="module")
def predicted(potential, structures):
    return list(predict(potential, structures, virial=True))


def moved(structures, positions=lambda s: s.positions, cell=lambda s: s.cell):
    return [replace(s, positions=positions(s), cell=cell(s)) for s in structures]


def test_rotation_and_reflection(potential, structures, predicted):
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for sign in (1.0, -1.0):
        matrix = turn * sign
        turned = moved(structures, lambda s: s.positions @ matrix.T, lambda s: s.cell @ matrix.T)  # noqa: B023
        for before, after in zip(predicted, predict(potential, turned, virial=True), strict=True):
            assert after.energy == pytest.approx(before.energy, rel=1e-11, abs=1e-11)
            np.testing.assert_allclose(after.forces, before.forces @ matrix.T, atol=1e-10)
            if before.stress is not None:
                np.testing.assert_allclose(after.stress, matrix @ before.stress @ matrix.T, atol=1e-10)


def test_permutation_of_atoms(potential, structures, predicted):
    orders = [np.random.default_rng(0).permutation(len(s)) for s in structures]
    shuffled = [
        replace(s, numbers=s.numbers[o], positions=s.positions[o]) for s, o in zip(structures, orders, strict=True)
    ]
    for order, before, after in zip(orders, predicted, predict(potential, shuffled), strict=True):
        assert after.energy == pytest.approx(before.energy, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(after.forces, before.forces[order], atol=1e-11)


def test_lattice_translation_of_single_atoms(potential, structures, predicted):
    generator = np.random.default_rng(0)
    shifted = moved(structures, lambda s: s.positions + generator.integers(-2, 3, (len(s), 3)) * s.pbc @ s.cell)
    for before, after in zip(predicted, predict(potential, shifted), strict=True):
        assert after.energy == pytest.approx(before.energy, rel=1e-11, abs=1e-11)
        np.testing.assert_allclose(after.forces, before.forces, atol=1e-10)


def test_forces_are_the_derivative_of_the_energy(potential, structures, predicted):
    step, generator = 1e-4, np.random.default_rng(0)
    directions = [generator.normal(size=s.positions.shape) for s in structures]
    ends = []
    for sign in (1, -1):
        displaced = [
            replace(s, positions=s.positions + sign * step * d) for s, d in zip(structures, directions, strict=True)
        ]
        ends.append([p.energy for p in predict(potential, displaced)])
    numerical = -np.subtract(*ends) / (2 * step)
    analytical = [np.sum(p.forces * d) for p, d in zip(predicted, directions, strict=True)]
    np.testing.assert_allclose(analytical, numerical, rtol=1e-5, atol=1e-6 * max(np.abs(analytical)))


def test_stress_is_the_derivative_of_the_energy_by_strain(potential, structures, predicted):
    step, generator = 1e-5, np.random.default_rng(0)
    strain = generator.normal(size=(3, 3))
    strain = strain + strain.T
    ends = []
    for sign in (1, -1):
        matrix = np.eye(3) + sign * step * strain
        strained = moved(structures, lambda s: s.positions @ matrix, lambda s: s.cell @ matrix)  # noqa: B023
        ends.append([p.energy for p in predict(potential, strained)])
    numerical = np.subtract(*ends) / (2 * step)
    for s, p, expected in zip(structures, predicted, numerical, strict=True):
        if p.stress is not None:
            assert np.sum(p.stress * strain) * s.volume == pytest.approx(expected, rel=1e-5, abs=1e-5)
