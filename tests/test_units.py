import ase.units
import numpy as np
import pytest
import scipy.constants

from forgefield.errors import UserError
from forgefield.units import BOHR, ENERGY_UNITS, HARTREE, LENGTH_UNITS, STRESS_UNITS, Units


def test_constants_are_the_published_ones():
    published = scipy.constants.physical_constants
    assert pytest.approx(published["Hartree energy in eV"][0], rel=1e-11) == HARTREE
    assert pytest.approx(published["Bohr radius"][0] * 1e10, rel=1e-11) == BOHR
    assert ENERGY_UNITS["kcal/mol"] == pytest.approx(4184 / scipy.constants.N_A / scipy.constants.e, rel=1e-14)
    assert STRESS_UNITS["GPa"] == pytest.approx(1e9 * 1e-30 / scipy.constants.e, rel=1e-14)


def test_values_are_near_those_of_ase():
    assert ENERGY_UNITS["kcal/mol"] == pytest.approx(ase.units.kcal / ase.units.mol, rel=2e-8)
    assert ENERGY_UNITS["kJ/mol"] == pytest.approx(ase.units.kJ / ase.units.mol, rel=2e-8)
    assert ENERGY_UNITS["Ry"] == pytest.approx(ase.units.Rydberg, rel=2e-8)
    assert LENGTH_UNITS["bohr"] == pytest.approx(ase.units.Bohr, rel=2e-8)
    assert STRESS_UNITS["kbar"] == pytest.approx(1000 * ase.units.bar, rel=2e-8)


def test_factors_of_every_quantity():
    factors = Units("kJ/mol", "nm").factors(Units("eV", "angstrom"))
    energy = ENERGY_UNITS["kJ/mol"]
    assert (factors.energy, factors.length, factors.virial) == (energy, 10, energy)
    assert factors.forces == pytest.approx(energy / 10)
    assert factors.stress == pytest.approx(energy / 1000)


def test_stress_in_its_own_unit():
    assert Units("eV", "angstrom", "GPa").factors(Units("eV", "angstrom")).stress == pytest.approx(1 / 160.2176634)
    assert Units("eV", "angstrom", "kbar").factors(Units("eV", "angstrom", "GPa")).stress == pytest.approx(0.1)


def test_there_and_back_is_the_identity():
    ours, theirs = Units("hartree", "bohr", "bar"), Units("kcal/mol", "nm")
    there, back = ours.factors(theirs), theirs.factors(ours)
    for quantity in ("energy", "length", "forces", "virial", "stress"):
        assert getattr(there, quantity) * getattr(back, quantity) == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("kcal/mol", "kcal/mol"),
        ("kcal mol^-1", "kcal/mol"),
        ("KCAL/MOL", "kcal/mol"),
        ("kJ mol-1", "kJ/mol"),
        ("Ha", "hartree"),
        ("Hartree", "hartree"),
        ("ev", "eV"),
        ("rydberg", "Ry"),
    ],
)
def test_usual_spellings_of_energy(word, name):
    assert Units(energy=word).energy == name


@pytest.mark.parametrize("word", ["Å", "A", "Ang", "Angstrom", "angstroms"])
def test_usual_spellings_of_angstrom(word):
    assert Units(length=word) == Units()


@pytest.mark.parametrize("word", ["eV/Å^3", "eV/A**3", "eV Å^-3", "eV/Ang³", "ev/angstrom^3"])
def test_usual_spellings_of_stress(word):
    assert Units(stress=word).stress == "eV/angstrom^3"


@pytest.mark.parametrize("word", ["hartree/bohr", "Ha/Bohr", "Eh a0^-1", "hartree bohr-1"])
def test_usual_spellings_of_forces(word):
    assert Units(forces=word).forces == "hartree/bohr"


@pytest.mark.parametrize("word", ["kcal/mol/Å", "kcal mol^-1 Ang^-1", "KCAL/MOL/angstrom"])
def test_usual_spellings_of_forces_per_mole(word):
    assert Units(forces=word).forces == "kcal/mol/angstrom"


def test_forces_and_virials_in_their_own_units():
    factors = Units("hartree", "angstrom", forces="hartree/bohr", virial="eV").factors(Units())
    assert (factors.energy, factors.virial) == (HARTREE, 1)
    assert factors.forces == pytest.approx(ase.units.Hartree / ase.units.Bohr, rel=4e-8)


SYSTEMS = [Units(energy, length) for energy in ENERGY_UNITS for length in LENGTH_UNITS]


@pytest.mark.parametrize("units", [*SYSTEMS, Units("hartree", "angstrom", "bar", "hartree/bohr", "kcal/mol")])
def test_round_trips_keep_energies_to_1e12_and_forces_to_1e10(units):
    energy, forces = -1.234567890123456e6, np.random.default_rng(0).normal(size=(100, 3))
    there, back = Units().factors(units), units.factors(Units())
    assert energy * there.energy * back.energy == pytest.approx(energy, rel=1e-12, abs=0)
    np.testing.assert_allclose(forces * there.forces * back.forces, forces, rtol=1e-10, atol=0)


def test_json_round_trip():
    for units in (Units(), Units("kJ/mol", "nm", "GPa", "hartree/bohr", "eV")):
        assert Units.from_json(units.to_json()) == units
    assert Units().to_json() == '{"energy": "eV", "length": "angstrom"}'


@pytest.mark.parametrize(
    "text", ["eV", '{"energie": "eV"}', '"eV"', "[1]", "null", "{}", '{"energy": 1, "length": "nm"}']
)
def test_json_of_something_else_is_refused(text):
    with pytest.raises(UserError, match="not readable; expected JSON such as"):
        Units.from_json(text)


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ({"energy": "kcal/mole"}, "unknown energy unit 'kcal/mole'; did you mean 'kcal/mol'"),
        ({"energy": "angstrom"}, "unknown energy unit 'angstrom'"),
        ({"energy": "MeV"}, "unknown energy unit 'MeV'; did you mean 'meV'"),
        ({"length": "Angstroem"}, "unknown length unit 'Angstroem'; did you mean 'angstrom'"),
        ({"length": "eV"}, "unknown length unit 'eV'"),
        ({"stress": "GPA/m"}, "unknown stress unit 'GPA/m'; did you mean 'GPa'"),
        ({"stress": "eV/Parsec^3"}, "unknown stress unit 'eV/Parsec\\^3'"),
        ({"stress": "mPa"}, "unknown stress unit 'mPa'; did you mean 'MPa'"),
        ({"forces": "hartree/boor"}, "unknown forces unit 'hartree/boor'; did you mean 'hartree/bohr'"),
        ({"forces": "kcal/mol"}, "unknown forces unit 'kcal/mol'"),
        ({"virial": "GPa"}, "unknown virial unit 'GPa'"),
        ({"stress": ""}, "unknown stress unit ''"),
    ],
)
def test_unknown_word_names_the_nearest_known(units, message):
    with pytest.raises(UserError, match=message):
        Units(**units)
