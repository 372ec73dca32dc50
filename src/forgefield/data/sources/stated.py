"""The units of a file: those that it or its format states, else those of the config."""

from dataclasses import fields
from pathlib import Path

from forgefield.config.dataset import SourceUnits
from forgefield.data.sources.formats import Format
from forgefield.data.sources.frames import ReadOptions
from forgefield.errors import UserError, named
from forgefield.units import Units, energy_unit, length_unit, stress_unit

EXAMPLE = {"energy": "kcal/mol", "length": "angstrom"}
SPELLED = {"energy": energy_unit, "length": length_unit, "stress": stress_unit}


def resolve_units(path: Path, form: Format, configured: SourceUnits, options: ReadOptions) -> Units:
    """The units of the numbers that ``form`` reads from a file.

    Raises:
        UserError: nobody states a unit, an unknown one is stated, or the config contradicts the file.
    """
    stated = stated_units(path, form, options)
    for kind, (word, where) in stated.items():
        wanted = getattr(configured, kind)
        if wanted and wanted != word:
            raise UserError(f"{path}: {where} in the file is {word}, but units.{kind} is {wanted}; correct one")
    words = {kind: word for kind, (word, _) in stated.items()}
    for kind, example in EXAMPLE.items():
        if not (form.assumed or kind in words or getattr(configured, kind)):
            kind_of_file = "an HDF5" if form.name == "hdf5" else f"an {form.name}"
            raise UserError(f"{path}: {kind_of_file} file without units; set units.{kind}, such as {example}")
    return configured.or_else(Units(**words))


def stated_units(path: Path, form: Format, options: ReadOptions) -> dict[str, tuple[str, str]]:
    """Kind of quantity -> the name of the unit that is stated for it, and what states it."""
    kinds = {field.name for field in fields(Units)}
    with named(path):
        return {
            kind: (SPELLED[kind](word), where)
            for kind, (word, where) in form.stated(path, options).items()
            if kind in kinds
        }
