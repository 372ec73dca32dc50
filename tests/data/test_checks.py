"""What is impossible is refused; what is improbable in eV and Å is warned about."""

from dataclasses import replace

import ase.build
import ase.data
import ase.io
import numpy as np
import pytest

from forgefield.data.checks import Magnitudes, check_structure
from forgefield.data.joined import Joined
from forgefield.data.structures import Structure
from forgefield.errors import UserError

KCAL = 23.060548
BOHR = 1.8897261


@pytest.fixture
def ethanol():
    """The energy is the real all-electron one, the forces those of a molecule at room temperature."""
    atoms = ase.build.molecule("CH3CH2OH")
    forces = np.random.default_rng(0).normal(size=(9, 3))
    return Structure(atoms.numbers, atoms.positions, energy=-4209.6, forces=forces)


@pytest.mark.parametrize(
    "structure",
    [
        Structure(np.array([1, 1]), np.array([[0, 0, 0], [0, 0, 0.74]])),
        Structure(np.array([6]), np.zeros((1, 3)), np.eye(3) * 2, np.ones(3, bool)),
        Structure(np.array([6]), np.zeros((1, 3)), np.diag([2.0, 2.0, 0.0]), np.array([True, True, False])),
        # 0.02 of a long cell vector, but 0.4 Å apart
        Structure(np.array([1, 1]), np.array([[0, 0, 0], [0, 0, 0.4]]), np.diag([1.0, 1, 20]), np.ones(3, bool)),
        Structure(np.array([1, 1]), np.array([[0, 0, 0], [3.0, 0, 0]]), np.eye(3) * 3, np.zeros(3, bool)),
    ],
    ids=["molecule", "one atom in a cell", "slab without a third vector", "long cell", "cell without periodicity"],
)
def test_possible(structure):
    check_structure(structure, "a.xyz, frame 0")


@pytest.mark.parametrize("field", ["positions", "forces", "energy", "virial", "cell"])
@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.nan, "NaN or infinite"),
        (np.inf, "NaN or infinite"),
        (-np.inf, "NaN or infinite"),
        (-1e200, r"-1e\+200, beyond all measure,"),
    ],
)
def test_not_finite(ethanol, field, value, found):
    arrays = {"positions": ethanol.positions, "forces": ethanol.forces, "virial": np.eye(3), "cell": np.eye(3)}
    broken = value
    if field in arrays:
        broken = arrays[field].copy()
        broken[2, 1] = value
    where = " at atom 2" if field in ("positions", "forces") else ""
    with pytest.raises(UserError, match=f"^a.xyz, frame 7: {field} {found}{where}; remove or repair"):
        check_structure(replace(ethanol, **{field: broken}), "a.xyz, frame 7")


SKEWED = np.array([[5.0, 0, 0], [4.0, 4.5, 0], [-2.0, 3.0, 6.0]])


@pytest.mark.parametrize(
    ("positions", "cell", "pbc"),
    [
        ([[1, 2, 3], [0, 0, 0], [1, 2, 3]], np.zeros((3, 3)), (False, False, False)),
        ([[1, 2, 3], [0, 0, 0], [1, 2, 3.004]], SKEWED, (True, True, True)),
        ([[1, 2, 3], [0, 0, 0], [1, 2, 3] + 2 * SKEWED[0] - SKEWED[2]], SKEWED, (True, True, True)),
        ([[0, 0, -1e-12], [1, 1, 1], SKEWED[1]], SKEWED, (True, True, False)),
    ],
    ids=["molecule", "nearly", "periodic image", "slab, across the edge"],
)
def test_two_atoms_on_one_point(positions, cell, pbc):
    structure = Structure(np.array([1, 1, 1]), np.array(positions, float), cell, np.array(pbc))
    with pytest.raises(UserError, match="frame 7: atoms 0 and 2 are on one point"):
        check_structure(structure, "a.xyz, frame 7")


def test_no_element():
    with pytest.raises(UserError, match="atom 1 is of no element"):
        check_structure(Structure(np.array([1, 0]), np.eye(3)[:2]), "a.xyz, frame 0")


@pytest.mark.parametrize("cell", [np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 1, 0])])
def test_periodic_without_a_volume(cell):
    with pytest.raises(UserError, match="periodic along a direction without a cell vector"):
        check_structure(Structure(np.array([1]), np.zeros((1, 3)), cell, np.ones(3, bool)), "a.xyz, frame 0")


def fed(structure):
    magnitudes = Magnitudes()
    for _ in range(5):
        magnitudes.add(Joined([structure]))
    return magnitudes


def warnings_of(structure):
    return fed(structure).contradictions() + fed(structure).warnings()


def test_plausible_magnitudes(ethanol):
    assert warnings_of(ethanol) == []


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


@pytest.mark.parametrize(("factor", "found"), [(0.1, "0.1"), (BOHR, "1.93"), (4, "more than 1.6")])
def test_lengths_in_another_unit_read_as_angstrom(ethanol, factor, found):
    (warning,) = warnings_of(replace(ethanol, positions=ethanol.positions * factor))
    assert f"nearest neighbors are {found}" in warning


def test_what_is_impossible_and_what_is_odd(ethanol):
    """Total energies below all electrons' and nuclei on one another cannot be; wide distances can."""
    assert fed(replace(ethanol, energy=ethanol.energy * KCAL)).contradictions()
    assert fed(replace(ethanol, positions=ethanol.positions / 10)).contradictions()
    assert not fed(replace(ethanol, positions=ethanol.positions * BOHR)).contradictions()


def test_energies_in_hartree_read_as_ev(ethanol):
    wrong = replace(ethanol, energy=ethanol.energy / 27.2114, forces=ethanol.forces / 27.2114)
    (warning,) = warnings_of(wrong)
    assert "total energies are 0.037" in warning
    assert "hartree" in warning
    assert warnings_of(replace(wrong, forces=ethanol.forces)) == []


@pytest.mark.parametrize("element", ["Li", "Cs", "Fe", "W", "Pb", "C", "Si", "Ar"])
def test_elements_have_plausible_lengths(element):
    atoms = ase.build.bulk(element)
    structure = Structure(atoms.numbers, atoms.positions, np.array(atoms.cell), atoms.pbc)
    assert warnings_of(structure) == []


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
