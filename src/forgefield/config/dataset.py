"""``datasets.NAME``: where the reference data is, how to read it, how to split it and how to store it."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WithJsonSchema, model_validator

from forgefield.config.base import URL, Section, Seed, Sha256, number
from forgefield.config.messages import first_problem
from forgefield.errors import UserError
from forgefield.units import Units, energy_unit, length_unit, stress_unit


def _unit(named: Callable[[str], str]) -> AfterValidator:
    def check(word: str) -> str:
        try:
            return named(word)
        except UserError as error:
            raise ValueError(str(error)) from None

    return AfterValidator(check)


EnergyUnit = Annotated[str, _unit(energy_unit)]
LengthUnit = Annotated[str, _unit(length_unit)]
StressUnit = Annotated[str, _unit(stress_unit)]


class SourceUnits(Section):
    """The units of the source file. Forces are in energy/length."""

    energy: EnergyUnit | None = None
    """Unit of energies, such as `eV`, `kcal/mol`, `kJ/mol` or `hartree`. Not given: the unit that the file states or
    that its format defines; an npz file that states none needs it."""

    length: LengthUnit | None = None
    """Unit of positions and cell vectors: `angstrom`, `nm` or `bohr`. Not given: as for `energy`."""

    stress: StressUnit | None = None
    """Unit of stresses, such as `GPa`, `kbar` or `eV/angstrom^3`. Not given: energy/length^3. Virials are in the energy
    unit."""

    def or_else(self, default: Units) -> Units:
        """These units, with those of ``default`` (what the file states or its format defines) where none is given."""
        return Units(self.energy or default.energy, self.length or default.length, self.stress or default.stress)


class Keys(Section):
    """The names of the labels in the source file, where they are not the usual ones."""

    energy: str | None = None
    """Name of the energy. Not given: the usual names are tried, and the one found is reported."""

    forces: str | None = None
    """Name of the forces. Not given: as for `energy`."""

    stress: str | None = None
    """Name of the stress, where that is to be trained on. Not given: as for `energy`."""

    virial: str | None = None
    """Name of the virial (minus stress times volume), instead of `stress`."""

    @model_validator(mode="after")
    def _one_of_stress_and_virial(self) -> Self:
        if self.stress and self.virial:
            raise ValueError("stress and virial are both given, but are the same label twice; remove one")
        return self


def _share(value: Any) -> Any:
    """A count, a fraction, or a list of paths."""
    value = number(value)
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple) and value and all(isinstance(path, str) for path in value):
        return list(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | float) and (0 < value < 1 or (value > 1 and isinstance(value, int))):
        return value
    raise ValueError(f"expected a count above 1, a fraction between 0 and 1, or paths, found {value!r}")


Share = Annotated[
    int | float | list[str],
    BeforeValidator(_share),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "exclusiveMinimum": 1},
                {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ]
        }
    ),
]


class Split(Section):
    """Which structures are trained on, which choose the best model, and which are only tested on."""

    method: Literal["blocks", "random", "files"] = "blocks"
    """`blocks`: train, valid and test are blocks of the source in its order, so that frames near in time stay together;
    `random`: drawn at random; `files`: each from files of its own."""

    train: Share = 0.8
    """Training structures: a count above 1, or a fraction of the source; for method `files` a path, a glob or a list of
    them."""

    valid: Share = 0.1
    """Validation structures, which choose the best model: likewise."""

    test: Share = 0.1
    """Test structures, which nothing but the final metrics sees: likewise."""

    seed: Seed = 0
    """Seed of method `random`."""

    @property
    def shares(self) -> dict[str, int | float | list[str]]:
        """The three parts by name."""
        return {"train": self.train, "valid": self.valid, "test": self.test}

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        paths = [part for part, share in self.shares.items() if isinstance(share, list)]
        if self.method == "files" and len(paths) < 3:
            missing = ", ".join(part for part in self.shares if part not in paths)
            raise ValueError(f"method files needs a path for each of train, valid and test; give one for {missing}")
        if self.method != "files" and paths:
            raise ValueError(f"{paths[0]} is a path, but method is {self.method}; write a number, or method: files")
        total = sum(share for share in self.shares.values() if isinstance(share, float))
        if total > 1 + 1e-9:
            raise ValueError(f"the fractions of train, valid and test add up to {total:g}; expected at most 1")
        return self


class StoreUnits(Section):
    """The units inside the HDF5 files. Forces are in energy/length, virials in the energy unit."""

    energy: EnergyUnit = "kJ/mol"
    """Unit of energies, such as `kJ/mol` or `eV`."""

    length: LengthUnit = "nm"
    """Unit of positions and cell vectors, such as `nm` or `angstrom`."""

    def as_units(self) -> Units:
        return Units(self.energy, self.length)


class Storage(Section):
    """How the converted data is stored."""

    units: StoreUnits = StoreUnits()
    """Units of the HDF5 files; every reader converts, so that results do not depend on them."""

    dtype: Literal["float64", "float32"] = "float64"
    """Floating-point type in the HDF5 files."""


class Download(Section):
    """A file from the internet, loaded once and kept under results/downloads."""

    url: Annotated[str, Field(pattern=URL)]
    """Its address, which begins with http:// or https://."""

    sha256: Sha256 | None = None
    """Its sha256. Not given: the run ends with the one that was found and the line to add."""


def _sources(value: Any) -> Any:
    """A list of paths and downloads, also of a single one."""
    return [_entry(entry) for entry in (value if isinstance(value, list | tuple) else [value])]


def _entry(value: Any) -> Any:
    if isinstance(value, Mapping):
        try:
            return Download.model_validate(value)
        except ValidationError as error:
            raise ValueError(first_problem(error, Download)) from None
    if not isinstance(value, str | Download):
        raise ValueError(f"expected a path, a glob or {{url: ..., sha256: ...}}, found {value!r}")
    return value


_SOURCE_SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"url": {"type": "string"}, "sha256": {"type": ["string", "null"]}},
            "required": ["url"],
            "additionalProperties": False,
        },
    ]
}
Sources = Annotated[
    list[str | Download],
    BeforeValidator(_sources),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [*_SOURCE_SCHEMA["anyOf"], {"type": "array", "items": _SOURCE_SCHEMA, "minItems": 1}]}),
]


class DatasetConfig(Section):
    """One set of reference data."""

    source: Sources | None = None
    """Path or glob of the reference file, relative to where the command is started, `{url: ..., sha256: ...}` of a file
    that is loaded once and kept under `results/downloads`, or a list of these. Not for split method `files`, which
    names its own."""

    format: str = "auto"
    """`auto` (by name and content), `npz` (sGDML or rMD17), `hdf5` (a group for each structure, molecule or number of
    atoms), `mace-hdf5`, `deepmd`, `deepmd-hdf5`, `cp2k`, or the name of a format that ASE reads, such as `extxyz` or
    `vasp-out`."""

    keep_unconverged: bool = False
    """Keep frames of which a program's output says that the calculation did not converge. Otherwise they are left out
    and counted."""

    units: SourceUnits = SourceUnits()
    """Units of the source."""

    keys: Keys = Keys()
    """Names of the labels in the source."""

    split: Split = Split()
    """Parts for training, validation and test."""

    store: Storage = Storage()
    """Units and type of the converted HDF5 files."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.split.method == "files" and self.source:
            raise ValueError("source is given, but split.method is files, which names its own; remove source")
        if self.split.method != "files" and not self.source:
            raise ValueError("source is missing; give the path of the reference file")
        return self
