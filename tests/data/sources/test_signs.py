"""Signs of forces, stresses and virials, by finite differences of energies as they are read."""

import ase.build
import ase.io
import numpy as np
import pytest
from ase.calculators.emt import EMT
from ase.calculators.singlepoint import SinglePointCalculator

STEP = 1e-4


@pytest.fixture
def crystal():
    atoms = ase.build.bulk("Cu", cubic=True) * (2, 1, 1)
    atoms.set_cell(atoms.cell.array @ [[1.02, 0.03, 0], [0, 0.99, 0.02], [0.01, 0, 1.04]], scale_atoms=True)
    atoms.rattle(0.05, seed=0)
    return atoms


def labelled(atoms, sign=1.0):
    """A copy that keeps the results of its calculator, forces and stress with this sign."""
    atoms = atoms.copy()
    atoms.calc = EMT()
    results = {"forces": sign * atoms.get_forces(), "stress": sign * atoms.get_stress()}
    atoms.calc = SinglePointCalculator(atoms, energy=atoms.get_potential_energy(), **results)
    return atoms


@pytest.mark.parametrize(("sign", "keys"), [(1, {}), (-1, {"forces": "-forces", "stress": "-stress"})])
def test_virial_is_minus_the_derivative_by_strain(crystal, read, tmp_path, sign, keys):
    frames = [labelled(crystal, sign)]
    for i, j in np.ndindex(3, 3):
        for step in (STEP, -STEP):
            strained, strain = crystal.copy(), np.eye(3)
            strain[i, j] += step
            strained.set_cell(crystal.cell.array @ strain, scale_atoms=True)
            frames.append(labelled(strained, sign))
    ase.io.write(tmp_path / "a.traj", frames)
    (first, *others), source = read(tmp_path / "a.traj", keys=keys)
    energies = np.array([s.energy for s in others]).reshape(3, 3, 2)
    slopes = (energies[..., 0] - energies[..., 1]) / (2 * STEP)
    np.testing.assert_allclose(first.virial, -slopes, atol=1e-5)
    assert np.abs(first.virial).min() > 0.01
    assert source.keys.described == {"energy": "energy", "forces": "forces", "stress": "stress"} | keys


@pytest.mark.parametrize(("sign", "keys"), [(1, {}), (-1, {"forces": "-forces", "stress": "-stress"})])
def test_forces_are_minus_the_derivative_by_positions(crystal, read, tmp_path, sign, keys):
    frames = [labelled(crystal, sign)]
    for axis in range(3):
        for step in (STEP, -STEP):
            moved = crystal.copy()
            moved.positions[1, axis] += step
            frames.append(labelled(moved, sign))
    ase.io.write(tmp_path / "a.traj", frames)
    (first, *others), _ = read(tmp_path / "a.traj", keys=keys)
    energies = np.array([s.energy for s in others]).reshape(3, 2)
    np.testing.assert_allclose(first.forces[1], (energies[:, 1] - energies[:, 0]) / (2 * STEP), atol=1e-6)
