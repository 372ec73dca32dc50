"""Energies against the work of forces along trajectories, right and wrong."""

from dataclasses import replace

import ase.build
import numpy as np
import pytest
from ase.calculators.emt import EMT

from forgefield.config.dataset import DatasetConfig
from forgefield.data.consistency import Consistency, explanations, slope
from forgefield.data.sources import RejectedFrame, Source
from forgefield.data.structures import Structure
from forgefield.units import ENERGY_UNITS, FORCE_UNITS, Units

KCAL = ENERGY_UNITS["kcal/mol"]


@pytest.fixture(scope="module")
def trajectory():
    """Thirty frames of a random walk in a crystal of copper, with the atoms put back into the cell."""
    atoms, random = ase.build.bulk("Cu", cubic=True), np.random.default_rng(0)
    atoms.rattle(0.1, rng=random)
    atoms.calc = EMT()
    structures = []
    for i in range(30):
        atoms.positions += random.normal(0, 0.02, (4, 3))
        atoms.wrap()
        energy, forces, cell = atoms.get_potential_energy(), atoms.get_forces(), np.array(atoms.cell)
        structures.append(Structure(atoms.numbers, atoms.positions.copy(), cell, atoms.pbc, energy, forces.copy()))
        structures[-1] = replace(structures[-1], source_index=i)
    return structures


def scaled(structures, energy=1.0, forces=1.0):
    return [replace(s, energy=s.energy * energy, forces=s.forces * forces) for s in structures]


def contradictions(structures, units=None):
    consistency = Consistency()
    for structure in structures:
        consistency.add(structure)
    return consistency.contradictions(units or Units())


def test_matching_units_have_the_slope_one(trajectory):
    found = slope(trajectory)
    assert found.slope == pytest.approx(1, abs=0.03)
    assert found.correlation > 0.99
    assert found.pairs == 29
    assert found.is_certain
    assert contradictions(trajectory) == []


def test_both_in_another_unit_agree_with_each_other(trajectory):
    assert contradictions(scaled(trajectory, 1 / KCAL, 1 / KCAL)) == []


@pytest.mark.parametrize(
    ("energy", "forces", "fits"),
    [
        (1 / KCAL, 1, "units: {energy: kcal/mol, forces: eV/angstrom}"),
        (1, 1 / KCAL, "units: {energy: eV, forces: kcal/mol/angstrom}"),
        (1, 1 / FORCE_UNITS["hartree/bohr"], "units: {energy: eV, forces: hartree/bohr}"),
        (1, -1, "forces of the opposite sign"),
        (
            1 / KCAL,
            -1,
            "forces of the opposite sign (put a minus before the key, in keys.forces) and units: {energy: kcal/mol, ",
        ),
        (1 / 4, 1, "energies per atom"),
        (7.0, 1, "no unit known here"),
    ],
)
def test_a_contradiction_names_what_would_fit(trajectory, energy, forces, fits):
    (line,) = contradictions(scaled(trajectory, energy, forces))
    assert "29 pairs of frames" in line
    assert fits in line


def test_units_that_fit_are_relative_to_those_given():
    """Energies in hartree with forces in hartree/bohr and lengths in Å, read as hartree/Å."""
    bohr = 1.8897261
    assert explanations(bohr, Units("hartree", "angstrom"), 9)[0] == "units: {energy: hartree, forces: hartree/bohr}"


def test_energies_that_have_nothing_to_do_with_the_work_say_nothing(trajectory):
    random = np.random.default_rng(1)
    assert contradictions([replace(s, energy=random.normal(0, 20)) for s in trajectory]) == []


def test_frames_far_from_each_other_are_no_pairs(trajectory):
    random = np.random.default_rng(1)
    apart = [replace(s, positions=s.positions + random.uniform(0, 3, 3)) for s in trajectory]
    assert slope(apart).pairs < 3


def test_other_frames_between_are_passed_over(trajectory):
    other = Structure(np.array([1, 1]), np.array([[0.0, 0, 0], [0, 0, 0.8]]), energy=5.0, forces=np.ones((2, 3)))
    mixed = [*trajectory[:15], other, replace(trajectory[15], forces=None), *trajectory[16:]]
    found = slope(mixed)
    assert found.pairs == 14 + 13
    assert found.slope == pytest.approx(1, abs=0.03)


def test_two_good_pairs_are_not_certain(trajectory):
    assert not slope(scaled(trajectory[:3], 1 / KCAL)).is_certain


def test_a_later_file_in_another_unit_is_found(trajectory):
    """Of long sources a tenth is looked at, in stretches that are judged apart."""
    long = [replace(trajectory[i % 30], source_index=i) for i in range(20_000)]
    assert contradictions(long) == []
    wrong = [*long[:10_000], *scaled(long[10_000:], 1 / KCAL)]
    assert "kcal/mol" in contradictions(wrong)[0]


REAL = {
    "npz/md17_ethanol_2000.npz": ("md17", True),
    "md22/md22_Ac-Ala3-NHMe_5frames.xyz": ("md17", True),
    "qm_outputs/vasp_Ti_aimd_vasprun.xml": ("ase", True),
    "molecules/3bpa_train_300K.xyz": ("ase", False),
    "molecules/ethanol_ccsdt_reduced_100_kcal.xyz": ("md17", False),
    "molecules/solvent_xtb_train_200.xyz": ("ase", False),
    "periodic/carbon_gap20_reduced_100.xyz": ("ase", False),
    "periodic/high_level_water_10.xyz": ("ase", False),
    "periodic/mptrj_10.db": ("ase", False),
}


@pytest.mark.parametrize("file", REAL)
def test_real_files(shared_data, file):
    """Trajectories have the slope 1, and tell a wrong unit; frames without order say nothing."""
    units, in_order = REAL[file]
    frames = Source(DatasetConfig(source="x", units=units), [shared_data / file])
    structures = [frame for frame in frames if not isinstance(frame, RejectedFrame)]
    found = slope(structures)
    assert found.is_certain == in_order
    assert contradictions(structures) == []
    if in_order:
        assert found.slope == pytest.approx(1, abs=0.02)
        assert "kcal/mol" in contradictions(scaled(structures, 1 / KCAL))[0]


@pytest.fixture(scope="module")
def strained():
    """Thirty frames of copper in which the atoms and the cell move, as in a simulation at constant pressure."""
    atoms, random = ase.build.bulk("Cu", cubic=True), np.random.default_rng(0)
    atoms.set_cell(0.97 * atoms.cell, scale_atoms=True)  # under pressure
    atoms.rattle(0.05, rng=random)
    atoms.calc = EMT()
    structures = []
    for i in range(30):
        atoms.set_cell(atoms.cell.array @ (np.eye(3) + random.normal(0, 2e-3, (3, 3))), scale_atoms=True)
        atoms.positions += random.normal(0, 0.005, (4, 3))
        atoms.wrap()
        virial = -atoms.get_stress(voigt=False) * atoms.get_volume()
        energy, forces, cell = atoms.get_potential_energy(), atoms.get_forces(), np.array(atoms.cell)
        structures.append(
            Structure(
                *(atoms.numbers, atoms.positions.copy(), cell, atoms.pbc, energy, forces.copy(), virial), source_index=i
            )
        )
    return structures


def test_the_stress_does_work_where_the_cell_changes(strained):
    found = slope(strained)
    assert found.slope == pytest.approx(1, abs=0.03)
    assert found.correlation > 0.99
    assert found.pairs == 29
    assert contradictions(strained) == []
    (line,) = contradictions([replace(s, energy=s.energy / KCAL) for s in strained])
    assert "kcal/mol" in line
    assert "units.stress" in line
    signs = [replace(s, virial=-s.virial) for s in strained]
    assert slope(signs).correlation < 0.9


def test_cells_that_change_without_virials_say_nothing(strained):
    assert slope([replace(s, virial=None) for s in strained]).pairs == 0
