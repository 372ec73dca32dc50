"""The units of a file: those that it states or that its format defines, else those of the config."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from forgefield.config.units import SourceUnits
from forgefield.errors import UserError, named
from forgefield.units import Units, unit_name

CONVERTED_BY_ASE = {
    *("abinit-out", "aims-output", "castep-castep", "castep-geom", "castep-md", "espresso-out", "gamess-us-out"),
    *("gaussian-out", "gpaw-out", "gpw", "nwchem-out", "onetep-out", "orca-output", "turbomole-gradient"),
    *("vasp-out", "vasp-xml"),
}
"""Formats of programs whose units ASE knows and turns into its own; in all others a user may have stored any."""


def units_of_format(form: str) -> dict[str, str]:
    """The units in which ASE returns a format's numbers, by kind of quantity; empty where that is up to the user."""
    return Units().names() if form in CONVERTED_BY_ASE else {}


def units_of_file(path: Path, config: SourceUnits, stated: Mapping[str, str], default: Units | None) -> Units:
    """Stated units, else configured ones, else the default.

    Args:
        path: of the file, for messages.
        config: the section ``units`` of the dataset.
        stated: unit words of the file or of its format, by kind of quantity.
        default: units of numbers about which neither says anything; None where they cannot be known.

    Raises:
        UserError: the config contradicts the file, a unit is unknown, or that of energies or lengths is not known.
    """
    with named(path):
        units = {kind: unit_name(kind, word) for kind, word in stated.items()}
    for kind, unit in units.items():
        configured = getattr(config, kind)
        if configured and configured != unit:
            raise UserError(f"{path}: {kind} in the file is in {unit}, but units.{kind} is {configured}; correct one")
    for kind, example in {"energy": "kcal/mol", "length": "angstrom"}.items():
        if default is None and not getattr(config, kind) and kind not in units:
            raise UserError(f"{path}: the file does not state its units; set units.{kind}, such as {example}")
    given = {kind: unit for kind, unit in config.model_dump().items() if unit}
    return Units(**(asdict(default or Units()) | given | units))
