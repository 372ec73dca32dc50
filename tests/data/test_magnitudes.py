"""Numbers that contradict their units, and unusual ones that are true."""

import pickle
from dataclasses import replace

import ase.build
import ase.data
import ase.io
import numpy as np
import pytest

from forgefield.data import lengths
from forgefield.data.joined import Joined
from forgefield.data.magnitudes import Magnitudes
from forgefield.data.structures import Structure
from forgefield.units import LENGTH_UNITS, Units

KCAL = 23.060548
BOHR = 1.8897261


@pytest.fixture
def ethanol():
    """The energy is the real all-electron one, the forces those of a molecule at room temperature."""
    atoms = ase.build.molecule("CH3CH2OH")
    forces = np.random.default_rng(0).normal(size=(9, 3))
    return Structure(atoms.numbers, atoms.positions, energy=-4209.6, forces=forces)


def fed(structure):
    magnitudes = Magnitudes()
    for _ in range(5):
        magnitudes.add(Joined([structure]))
    return magnitudes


def warnings_of(structure):
    return fed(structure).contradictions() + fed(structure).warnings()


def test_plausible_magnitudes(ethanol):
    assert warnings_of(ethanol) == []


def test_forces_of_zero(ethanol):
    assert "all forces of most structures are 0" in warnings_of(replace(ethanol, forces=np.zeros((9, 3))))[0]


def test_energies_in_kcal_read_as_ev(ethanol):
    wrong = replace(ethanol, energy=ethanol.energy * KCAL, forces=ethanol.forces * KCAL)
    (warning,) = warnings_of(wrong)
    assert "total energies are 23." in warning
    assert "forces' RMS is 19.3 eV/Å" in warning
    assert "kcal/mol" in warning


def test_forces_alone_are_evidence(ethanol):
    """Energies relative to atoms are never too large; forces then tell."""
    (warning,) = warnings_of(replace(ethanol, energy=-33.0 * KCAL, forces=ethanol.forces * KCAL))
    assert "total energies" not in warning
    assert "RMS" in warning


@pytest.mark.parametrize(
    ("factor", "found", "fits"),
    [
        (0.1, "0.10", "nm (by which it is 1.02)"),
        (10, "10.20", "no unit known here"),
        (BOHR, "1.93", "bohr (by which it is 1.02)"),
        (1 / BOHR, "0.54", "no unit known here"),
    ],
)
def test_lengths_in_another_unit_read_as_angstrom(ethanol, factor, found, fits):
    (warning,) = warnings_of(replace(ethanol, positions=ethanol.positions * factor))
    assert f"lengths look wrong for angstrom: nearest neighbors are {found} times" in warning
    assert f"; {fits} fits; set units.length" in warning


@pytest.mark.parametrize(("unit", "factor"), [("bohr", 1 / BOHR), ("nm", 10)])
def test_lengths_in_angstrom_read_in_another_unit(ethanol, unit, factor):
    (line,) = fed(replace(ethanol, positions=ethanol.positions * factor)).contradictions(Units("eV", unit))
    assert f"lengths look wrong for {unit}" in line
    assert "angstrom (by which it is 1.02) fits" in line


def test_what_fits_no_other_unit_is_no_contradiction(ethanol):
    """But a warning, unless nuclei are on one another."""
    for factor in (4, 0.3):
        odd = fed(replace(ethanol, positions=ethanol.positions * factor))
        assert odd.contradictions() == []
        assert "no unit known here fits" in odd.warnings()[0]
    assert fed(replace(ethanol, positions=ethanol.positions * 0.04)).contradictions()
    assert fed(replace(ethanol, energy=ethanol.energy * KCAL)).contradictions()


def crystal(element, scale=1.0, structure=None, a=None):
    atoms = ase.build.bulk(element, structure, a=a, cubic=structure is None)
    atoms = atoms.repeat(2 if len(atoms) == 1 else 1)
    return Structure(atoms.numbers, atoms.positions * scale, np.array(atoms.cell) * scale, atoms.pbc)


@pytest.mark.parametrize(
    ("element", "scale", "structure", "a"),
    [
        ("C", 0.78, None, None),
        ("Fe", 0.8, None, None),
        ("Na", 0.53, None, None),
        ("U", 0.9, "bcc", 3.47),
        ("H", 1.0, "sc", 1.2),
        ("LiH", 0.6, "rocksalt", 4.08),
    ],
    ids=["diamond at 1 TPa", "iron in a planet", "sodium at 300 GPa", "uranium", "metallic hydrogen", "LiH"],
)
def test_solids_under_pressure_are_no_contradiction(element, scale, structure, a):
    assert fed(crystal(element, scale, structure, a)).contradictions() == []


def test_gases_tell_nothing():
    """Carbon tetrafluoride between atoms of xenon, and a cluster of hydrogen atoms, twice as wide as usual."""
    fluoride, line = ase.build.molecule("CF4"), np.linspace([9, 0, 0], [30, 0, 0], 8)
    mixed = np.concatenate([1.9 * fluoride.positions, line])
    assert fed(Structure(np.r_[fluoride.numbers, [54] * 8], mixed)).contradictions() == []
    assert fed(Structure(np.ones(8, int), line / 2.5)).contradictions() == []
    assert fed(Structure(fluoride.numbers, 1.9 * fluoride.positions)).contradictions()


@pytest.mark.filterwarnings("error")
def test_most_atoms_out_of_reach_are_no_contradiction():
    assert fed(Structure(np.full(8, 6), np.outer(np.arange(8) ** 4, [60.0, 0, 0]))).contradictions() == []


@pytest.mark.parametrize(("unit", "factor"), [("nm", 0.1), ("bohr", BOHR)])
def test_a_large_metal_in_another_unit_needs_no_more_neighbors_than_usual(monkeypatch, unit, factor):
    found, neighbor_pairs = [], lengths.neighbor_pairs
    monkeypatch.setattr(lengths, "neighbor_pairs", lambda *args: (found.append(neighbor_pairs(*args)), found[-1])[1])
    copper = ase.build.bulk("Cu", cubic=True).repeat(6)
    scale = [copper.positions * factor, np.array(copper.cell) * factor]
    magnitudes = Magnitudes()
    magnitudes.add(Joined([Structure(copper.numbers, *scale, copper.pbc)]))
    assert f"; {unit} (by which it is" in magnitudes.contradictions()[0]
    assert sum(len(pairs.sender) for pairs in found) < 200 * len(copper)


def test_lengths_of_many_small_files_are_bounded(ethanol):
    together = fed(ethanol).lengths
    for _ in range(16):
        together.merge(together)
    assert lengths.MOST < len(pickle.dumps(together)) / 16 < 2 * lengths.MOST


def test_a_dissociating_molecule_is_no_contradiction():
    magnitudes = Magnitudes()
    for distance in np.linspace(0.6, 6, 60):
        magnitudes.add(Joined([Structure(np.array([1, 17]), np.array([[0, 0, 0], [0, 0, distance]]))]))
    assert magnitudes.contradictions() == []


def test_energies_in_hartree_read_as_ev(ethanol):
    wrong = replace(ethanol, energy=ethanol.energy / 27.2114, forces=ethanol.forces / 27.2114)
    (line,) = fed(wrong).contradictions()
    assert "energies look too small for eV: total energies are 0.037" in line
    assert "hartree fits; set units.energy" in line
    assert warnings_of(replace(wrong, forces=ethanol.forces)) == []


def test_energies_in_ev_read_as_hartree(ethanol):
    """Those relative to atoms are not too large, but the forces are."""
    wrong = replace(ethanol, energy=-33.0 * 27.2114, forces=ethanol.forces * 27.2114)
    (line,) = fed(wrong).contradictions(Units("hartree", "angstrom"))
    assert "energies look too large for hartree: the forces' RMS is 22.8 eV/Å" in line
    assert "eV fits; set units.energy" in line


def test_forces_alone_in_another_unit(ethanol):
    wrong = replace(ethanol, forces=ethanol.forces * 51.4221)
    (line,) = fed(wrong).contradictions(Units("eV", "angstrom", forces="hartree/bohr"))
    assert "forces look too large for hartree/bohr: the forces' RMS is 43.1 eV/Å" in line
    assert "; eV/angstrom fits; set units.forces" in line


@pytest.mark.parametrize("element", ["Li", "Cs", "Fe", "W", "Pb", "C", "Si", "Ar"])
def test_elements_have_plausible_lengths(element):
    assert warnings_of(crystal(element)) == []


# Total energies in hartree: nearly exact non-relativistic ones (Davidson et al., Phys. Rev. A 44, 7071, 1991), and
# that of gold by relativistic Hartree-Fock, the largest that occurs.
@pytest.mark.parametrize(
    ("symbol", "hartree"), [("H", -0.5), ("C", -37.845), ("O", -75.067), ("Ar", -527.54), ("Au", -19035)]
)
def test_true_total_energies_are_plausible(symbol, hartree):
    number = ase.data.atomic_numbers[symbol]
    magnitudes = Magnitudes()
    atom = Structure(np.array([number]), np.zeros((1, 3)), energy=hartree * 27.211386)
    magnitudes.add(Joined([atom]))
    assert magnitudes.warnings() == []


@pytest.mark.parametrize(
    ("file", "warns"),
    [
        ("molecules/ethanol_ccsdt_reduced_100_kcal.xyz", True),
        ("molecules/3bpa_train_300K.xyz", False),
        ("periodic/high_level_water_10.xyz", False),
        ("periodic/mptrj_10.db", False),
        ("qm_outputs/vasp_Ti_aimd_vasprun.xml", False),
    ],
)
def test_real_files(shared_data, file, warns):
    magnitudes = Magnitudes()
    for atoms in ase.io.read(shared_data / file, ":10"):
        results = atoms.calc.results
        cell, labels = np.array(atoms.cell), {"energy": results["energy"], "forces": results["forces"]}
        magnitudes.add(Joined([Structure(atoms.numbers, atoms.positions, cell, atoms.pbc, **labels)]))
    assert bool(magnitudes.contradictions()) == warns
    assert magnitudes.warnings() == []


@pytest.mark.parametrize("unit", ["bohr", "nm"])
@pytest.mark.parametrize(
    "file", ["periodic/high_level_water_10.xyz", "periodic/mptrj_10.db", "periodic/uio66_mof_finetune_10.xyz"]
)
def test_real_files_in_a_wrong_unit(shared_data, file, unit):
    magnitudes = Magnitudes()
    for atoms in ase.io.read(shared_data / file, ":"):
        positions, cell = (x * LENGTH_UNITS[unit] for x in (atoms.positions, np.array(atoms.cell)))
        magnitudes.add(Joined([Structure(atoms.numbers, positions, cell, atoms.pbc)]))
    (line,) = magnitudes.contradictions(Units("eV", unit))
    assert "angstrom (by which it is" in line
