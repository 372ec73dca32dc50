"""``datasets.NAME``: where the reference data is, how to read it, how to split it and how to store it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema, field_validator, model_validator

from forgefield.config.base import URL, Section, Sha256
from forgefield.config.messages import first_problem
from forgefield.config.split import Split
from forgefield.config.units import NamedUnits, SourceUnits, StoreUnits


class Keys(Section):
    """The names of the labels in the source file, where they are not the usual ones. A minus before the name of forces,
    a stress or a virial, as in `-gradient`, says that the file has the opposite sign."""

    energy: str | None = None
    """Name of the energy. Not given: the usual names are tried, and the one found is reported."""

    forces: str | None = None
    """Name of the forces. Not given: as for `energy`."""

    stress: str | None = None
    """Name of the stress, where that is to be trained on: positive where the material is under tension, as in ASE; some
    programs, such as VASP, write the opposite sign. Not given: as for `energy`."""

    virial: str | None = None
    """Name of the virial (minus stress times volume), instead of `stress`."""

    weight: str | None = None
    """Name of a structure's weight, by which all its labels count. Not given: `config_weight`, where that is there."""

    energy_weight: str | None = None
    """Name of the weight of a structure's energy, which multiplies that of the structure. Not given:
    `config_energy_weight`, where that is there."""

    forces_weight: str | None = None
    """Name of the weight of its forces: likewise, with `config_forces_weight`."""

    virial_weight: str | None = None
    """Name of the weight of its stress or virial: likewise, with `config_virials_weight` or `config_stress_weight`."""

    @field_validator("energy")
    @classmethod
    def _energies_have_one_sign(cls, key: str | None) -> str | None:
        if key and key.startswith("-"):
            raise ValueError(f"{key!r} would turn the sign of energies, which no program does; remove the minus")
        return key

    @model_validator(mode="after")
    def _one_of_stress_and_virial(self) -> Self:
        if self.stress and self.virial:
            raise ValueError("stress and virial are both given, but are the same label twice; remove one")
        return self


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
    atoms), `mace-hdf5`, `deepmd`, `deepmd-hdf5`, `cp2k`, the name of a format that ASE reads, such as `extxyz` or
    `vasp-out`, or `dpdata:` and the name of one that dpdata reads, where that is installed."""

    keep_unconverged: bool = False
    """Keep frames of which a program's output says that the calculation did not converge. Otherwise they are left out
    and counted."""

    units: NamedUnits = SourceUnits()
    """Units of the source."""

    trust_units: bool = False
    """Convert although the numbers contradict the units: energies that do not fit the forces, or energies, forces or
    lengths of a size that they cannot have. Otherwise that ends the conversion, with the evidence."""

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
