"""The ASE calculator in relaxations and dynamics, on molecules and periodic cells."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from ase import Atoms, units
from ase.build import bulk, molecule
from ase.calculators.calculator import PropertyNotImplementedError
from ase.calculators.fd import calculate_numerical_forces, calculate_numerical_stress
from ase.md.verlet import VelocityVerlet
from ase.neighborlist import neighbor_list
from ase.optimize import BFGS

from forgefield.calculators import ForgefieldCalculator
from forgefield.errors import UserError
from forgefield.models.potential import load_potential, save_potential


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory, random_mace):
    """A small MACE with random weights that knows H, C and O."""
    potential = random_mace(r_max=3.5, avg_num_neighbors=6.0, scale=20.0)
    path = tmp_path_factory.mktemp("models") / "small"
    save_potential(replace(potential, energy_shifts={1: -13.6, 6: -1029.0, 8: -2041.0}), path)
    return path


@pytest.fixture(scope="module")
def calculator(model_dir):
    return ForgefieldCalculator(model_dir)


@pytest.fixture
def diamond():
    """A cell smaller than the cutoff, off its symmetric point."""
    atoms = bulk("C", "diamond", a=3.6)
    atoms.rattle(0.05, seed=1)
    atoms.set_cell(atoms.cell.array + np.random.default_rng(2).normal(0, 0.05, (3, 3)), scale_atoms=True)
    return atoms


def test_forces_are_minus_the_derivative_of_the_energy(calculator):
    atoms = molecule("CH3OH")
    atoms.rattle(0.1, seed=0)
    atoms.calc = calculator
    numerical = calculate_numerical_forces(atoms, eps=1e-4)
    assert np.abs(numerical).max() > 0.1
    np.testing.assert_allclose(atoms.get_forces(), numerical, atol=1e-6)


def test_forces_and_stress_of_a_cell_smaller_than_the_cutoff(calculator, diamond):
    diamond.calc = calculator
    numerical = calculate_numerical_stress(diamond, eps=1e-5)
    assert np.abs(numerical).max() > 1e-3
    np.testing.assert_allclose(diamond.get_stress(), numerical, atol=1e-7)
    np.testing.assert_allclose(diamond.get_forces(), calculate_numerical_forces(diamond, eps=1e-4), atol=1e-6)


def test_a_supercell_has_the_energy_of_its_cells(calculator, diamond):
    repeated = diamond.repeat((2, 2, 1))
    diamond.calc, repeated.calc = calculator, calculator
    assert repeated.get_potential_energy() == pytest.approx(4 * diamond.get_potential_energy(), rel=1e-12)
    np.testing.assert_allclose(repeated.get_stress(), diamond.get_stress(), atol=1e-12)


def test_distant_molecules_add_up_and_shifts_are_included(calculator, model_dir):
    water = molecule("H2O")
    far = water.copy()
    far.positions += [50.0, 0.0, 0.0]
    pair = water + far
    water.calc, pair.calc = calculator, calculator
    assert pair.get_potential_energy() == pytest.approx(2 * water.get_potential_energy(), rel=1e-13)
    shifts = load_potential(model_dir).energy_shifts
    alone = Atoms("O")
    alone.calc = calculator
    assert abs(alone.get_potential_energy() - shifts[8]) < 10
    np.testing.assert_array_equal(alone.get_forces(), 0.0)


def test_dynamics_conserves_energy_and_compiles_few_times(model_dir):
    """Hot diamond: neighbors come and go at the cutoff, and a few shapes hold them all."""
    calculator = ForgefieldCalculator(model_dir)
    atoms = bulk("C", "diamond", a=3.6, cubic=True)
    atoms.calc = calculator
    thermal = np.sqrt(atoms.get_masses() * units.kB * 2000)
    atoms.set_momenta(np.random.default_rng(0).normal(size=(8, 3)) * thermal[:, None])
    totals, neighbors = [], set()
    dynamics = VelocityVerlet(atoms, timestep=0.25 * units.fs)
    dynamics.attach(lambda: totals.append(atoms.get_total_energy()))
    dynamics.attach(lambda: neighbors.add(len(neighbor_list("i", atoms, 3.5))))
    dynamics.run(200)
    assert len(neighbors) > 5
    assert np.ptp(totals) < 0.02 * atoms.get_kinetic_energy()
    assert calculator._predictor._function._evaluate._cache_size() <= 3


def test_relaxation_lowers_the_forces(calculator):
    atoms = molecule("H2O")
    atoms.calc = calculator
    before = np.abs(atoms.get_forces()).max()
    BFGS(atoms, logfile=None).run(fmax=before / 5, steps=50)
    assert np.linalg.norm(atoms.get_forces(), axis=1).max() <= before / 5


def test_single_precision_is_close_to_double(calculator, model_dir):
    atoms = molecule("H2O")
    atoms.calc = calculator
    forces = atoms.get_forces()
    atoms.calc = ForgefieldCalculator(model_dir, precision="float32")
    difference = np.abs(atoms.get_forces() - forces).max()
    assert 0 < difference < 1e-4


def test_a_molecule_has_no_stress(calculator):
    atoms = molecule("H2O")
    atoms.calc = calculator
    with pytest.raises(PropertyNotImplementedError):
        atoms.get_stress()


def test_an_unknown_element_is_named(calculator):
    atoms = molecule("NH3")
    atoms.calc = calculator
    with pytest.raises(UserError, match=r"N is unknown to the model \(it knows H, C, O\)"):
        atoms.get_potential_energy()


def test_a_copy_gives_the_same(calculator):
    atoms = molecule("H2O")
    atoms.calc = calculator
    other = molecule("H2O")
    other.calc = copy.deepcopy(calculator)
    assert other.get_potential_energy() == atoms.get_potential_energy()


@pytest.mark.parametrize("pbc", [(True, True, False), (True, False, False)])
def test_the_stress_of_a_slab_or_wire_is_per_volume_of_its_own_cell(calculator, pbc):
    atoms = Atoms("OH", [[0.0, 0.0, 0.0], [1.0, 0.2, 0.1]], cell=[2.7, 3.1, 20.0], pbc=pbc)
    atoms.calc = calculator
    numerical = calculate_numerical_stress(atoms, eps=1e-5)
    assert np.abs(numerical).max() > 1e-3
    np.testing.assert_allclose(atoms.get_stress(), numerical, atol=1e-7)


def test_a_slab_without_a_third_vector_has_no_stress(calculator):
    atoms = Atoms("OH", [[0.0, 0.0, 0.0], [1.0, 0.2, 0.1]], cell=[2.7, 3.1, 0.0], pbc=(True, True, False))
    atoms.calc = calculator
    with pytest.raises(PropertyNotImplementedError):
        atoms.get_stress()


@pytest.mark.parametrize(
    ("atoms", "message"),
    [
        (Atoms("OH", [[0.0, 0.0, 0.0], [np.nan, 0.0, 0.0]]), "position of atom 1 NaN or infinite"),
        (Atoms("O", cell=[np.inf, 3.0, 3.0], pbc=True), "cell NaN or infinite"),
        (Atoms(), "no atoms"),
    ],
)
def test_atoms_that_are_none_are_refused_in_one_line(calculator, atoms, message):
    atoms.calc = calculator
    with pytest.raises(UserError, match=message) as caught:
        atoms.get_potential_energy()
    assert "\n" not in str(caught.value)


def test_results_that_are_no_numbers_are_refused(random_mace, tmp_path):
    potential = random_mace(scale=1e308)
    save_potential(potential, tmp_path / "model")
    atoms = molecule("H2O")
    atoms.calc = ForgefieldCalculator(tmp_path / "model")
    with pytest.raises(UserError, match=r"the model gives \w+ NaN or infinite"):
        atoms.get_potential_energy()
