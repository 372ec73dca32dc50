"""Whose word counts about the units of a file."""

from pathlib import Path

import pytest

from forgefield.config.units import SourceUnits
from forgefield.data.sources.units import CONVERTED_BY_ASE, units_of_file, units_of_format
from forgefield.errors import UserError
from forgefield.units import Units

FILE = Path("a.xyz")
NOTHING = SourceUnits()


def test_stated_units_then_configured_ones_then_the_default():
    stated, config = {"energy": "kcal mol^-1"}, SourceUnits(length="bohr", forces="hartree/bohr")
    expected = Units("kcal/mol", "bohr", forces="hartree/bohr", stress="GPa")
    assert units_of_file(FILE, config, stated, Units(stress="GPa")) == expected


def test_the_same_in_other_words_is_no_contradiction():
    assert units_of_file(FILE, SourceUnits(energy="Ha"), {"energy": "hartree"}, Units()).energy == "hartree"


@pytest.mark.parametrize(
    ("config", "stated", "message"),
    [
        (SourceUnits(energy="eV"), {"energy": "Ha"}, "energy in the file is in hartree, but units.energy is eV"),
        (NOTHING, {"energy": "mile"}, "unknown energy unit 'mile'"),
        (NOTHING, {"length": "nm"}, "does not state its units; set units.energy, such as kcal/mol"),
        (SourceUnits(energy="eV"), {}, "does not state its units; set units.length, such as angstrom"),
    ],
)
def test_contradictory_unknown_or_missing(config, stated, message):
    with pytest.raises(UserError, match=f"^a.xyz: .*{message}"):
        units_of_file(FILE, config, stated, None)


def test_ase_converts_what_programs_write():
    assert units_of_format("vasp-xml")["stress"] == "eV/angstrom^3"
    assert units_of_format("extxyz") == {}


def test_formats_are_ones_that_ase_reads():
    from ase.io.formats import ioformats

    assert all(ioformats[form].can_read for form in CONVERTED_BY_ASE)


def test_a_program_s_output_in_other_units_is_refused(shared_data, read):
    with pytest.raises(UserError, match=r"energy in the file is in eV, but units.energy is kcal/mol; correct one"):
        read(shared_data / "qm_outputs/vasp_Ti_aimd_vasprun.xml", units="md17")
