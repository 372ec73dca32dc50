"""Names of units and of sets of them in the configuration."""

import pytest

from forgefield.config import DatasetConfig
from forgefield.config.units import PRESETS, SourceUnits
from forgefield.units import Units


def test_units_get_their_usual_name():
    given = {"energy": "kcal mol^-1", "stress": "GPA", "forces": "Ha/bohr", "virial": "ev"}
    units = DatasetConfig(source="a.npz", units=given).units
    assert units == SourceUnits(energy="kcal/mol", stress="GPa", forces="hartree/bohr", virial="eV")


@pytest.mark.parametrize("name", PRESETS)
def test_one_word_stands_for_all_units(load, name):
    units = load(f"datasets.ethanol.units={name}").datasets["ethanol"].units
    assert Units(**units.model_dump()) == PRESETS[name]
    assert f"`{name}`" in SourceUnits.__doc__


def test_what_the_words_stand_for():
    assert PRESETS["md17"] == Units("kcal/mol", "angstrom")
    assert PRESETS["cp2k"].name("forces") == "hartree/bohr"
    assert PRESETS["spice"].name("forces") == "hartree/bohr"
    assert PRESETS["ani"].name("forces") == "hartree/angstrom"


def test_unknown_word(mistake):
    message = mistake("datasets.ethanol.units=md71")
    assert "datasets.ethanol.units: unknown set of units 'md71'; did you mean md17?" in message


@pytest.mark.parametrize("name", PRESETS)
def test_the_page_about_units_shows_them(root, name):
    table = [line.split("|") for line in (root / "docs/units.md").read_text().splitlines() if line.startswith("|")]
    (row,) = [row for row in table if f"`{name}`" in row[1]]
    cells = [cell.strip() for cell in row[2:6]]
    assert cells == [PRESETS[name].name(kind) for kind in ("energy", "length", "forces", "stress")]
