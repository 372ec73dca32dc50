"""``datasets.NAME.units`` and ``datasets.NAME.store.units``: names of units, and of sets of them."""

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, GetJsonSchemaHandler

from forgefield.config.base import Section
from forgefield.config.messages import did_you_mean
from forgefield.errors import UserError
from forgefield.units import Units, unit_name

PRESETS: dict[str, Units] = {
    "ase": Units("eV", "angstrom"),
    "md17": Units("kcal/mol", "angstrom"),
    "ani": Units("hartree", "angstrom"),
    "spice": Units("hartree", "bohr"),
    "atomic": Units("hartree", "bohr"),
    "rydberg": Units("Ry", "bohr"),
    "vasp": Units("eV", "angstrom", stress="kbar"),
    "cp2k": Units("hartree", "angstrom", stress="bar", forces="hartree/bohr"),
    "gromacs": Units("kJ/mol", "nm", stress="bar"),
    "lammps-metal": Units("eV", "angstrom", stress="bar"),
    "lammps-real": Units("kcal/mol", "angstrom", stress="atm"),
}
"""Units in which programs and data sets of these names write; docs/units.md shows them."""


def _unit(kind: str) -> AfterValidator:
    def check(word: str) -> str:
        try:
            return unit_name(kind, word)
        except UserError as error:
            raise ValueError(str(error)) from None

    return AfterValidator(check)


EnergyUnit = Annotated[str, _unit("energy")]
LengthUnit = Annotated[str, _unit("length")]
StressUnit = Annotated[str, _unit("stress")]
ForceUnit = Annotated[str, _unit("forces")]


class SourceUnits(Section):
    """The units of the source, or one word for all of them: `ase`, `md17`, `ani`, `spice`, `atomic`, `rydberg`, `vasp`,
    `cp2k`, `gromacs`, `lammps-metal` or `lammps-real` (`docs/units.md`)."""

    energy: EnergyUnit | None = None
    """Unit of energies, such as `eV`, `kcal/mol`, `kJ/mol` or `hartree`. Not given: the unit that the file states or
    that its format defines; an npz file that states none needs it."""

    length: LengthUnit | None = None
    """Unit of positions and cell vectors: `angstrom`, `nm` or `bohr`. Not given: as for `energy`."""

    forces: ForceUnit | None = None
    """Unit of forces, such as `hartree/bohr`. Not given: energy/length."""

    stress: StressUnit | None = None
    """Unit of stresses, such as `GPa`, `kbar` or `eV/angstrom^3`. Not given: energy/length^3."""

    virial: EnergyUnit | None = None
    """Unit of virials. Not given: that of energies."""


def _expanded(value: Any) -> Any:
    """A preset's name becomes its units."""
    if not isinstance(value, str):
        return value
    if value not in PRESETS:
        raise ValueError(f"unknown set of units {value!r}{did_you_mean(value, PRESETS)}")
    return {kind: unit for kind, unit in asdict(PRESETS[value]).items() if unit}


class _OrName:
    """Says in the JSON schema that a preset's name may stand for the section."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"enum": list(PRESETS)}]}


NamedUnits = Annotated[SourceUnits, BeforeValidator(_expanded), _OrName()]


class StoreUnits(Section):
    """The units inside the HDF5 files. Forces are in energy/length, virials in the energy unit."""

    energy: EnergyUnit = "kJ/mol"
    """Unit of energies, such as `kJ/mol` or `eV`."""

    length: LengthUnit = "nm"
    """Unit of positions and cell vectors, such as `nm` or `angstrom`."""

    def as_units(self) -> Units:
        return Units(self.energy, self.length)
