"""Units of energy, length and stress, and the factors between them.

Constants: the SI definitions of the electronvolt and the mole (exact) and the CODATA 2022 values of the hartree and the
bohr (https://physics.nist.gov/cuu/Constants). ASE keeps CODATA 2014 values, which differ by less than 2e-8 relative.
"""

import difflib
import json
import re
from dataclasses import asdict, dataclass

from forgefield.errors import UserError

ELECTRONVOLT = 1.602176634e-19  # J, exact
AVOGADRO = 6.02214076e23  # 1/mol, exact
CALORIE = 4.184  # J, the thermochemical calorie, exact
HARTREE = 27.211386245981  # eV
BOHR = 0.529177210544  # Å
JOULE_PER_MOL = 1 / (ELECTRONVOLT * AVOGADRO)  # eV
PASCAL = 1e-30 / ELECTRONVOLT  # eV/Å^3

ENERGY_UNITS: dict[str, float] = {
    "eV": 1.0,
    "meV": 1e-3,
    "kcal/mol": 1e3 * CALORIE * JOULE_PER_MOL,
    "kJ/mol": 1e3 * JOULE_PER_MOL,
    "hartree": HARTREE,
    "Ry": HARTREE / 2,
}
"""Name -> value in eV."""

LENGTH_UNITS: dict[str, float] = {"angstrom": 1.0, "nm": 10.0, "bohr": BOHR}
"""Name -> value in Å."""

STRESS_UNITS: dict[str, float] = {
    f"{energy}/{length}^3": e / x**3 for energy, e in ENERGY_UNITS.items() for length, x in LENGTH_UNITS.items()
} | {"GPa": 1e9 * PASCAL, "MPa": 1e6 * PASCAL, "kbar": 1e8 * PASCAL, "bar": 1e5 * PASCAL, "Pa": PASCAL}
"""Name -> value in eV/Å^3."""

ALIASES: dict[str, str] = {
    "electronvolt": "eV",
    "Ha": "hartree",
    "Eh": "hartree",
    "rydberg": "Ry",
    "Å": "angstrom",
    "A": "angstrom",
    "Ang": "angstrom",
    "angstroms": "angstrom",
    "nanometer": "nm",
    "a0": "bohr",
}
"""Other spelling -> name."""


@dataclass(frozen=True)
class Factors:
    """What to multiply each quantity by to convert it."""

    energy: float
    length: float
    forces: float
    virial: float
    stress: float


@dataclass(frozen=True)
class Units:
    """The units of a set of structures. Forces are in energy/length and virials in the energy unit.

    Args:
        energy: a name in :data:`ENERGY_UNITS`, or a usual other spelling of it, which is replaced by the name.
        length: likewise in :data:`LENGTH_UNITS`.
        stress: likewise in :data:`STRESS_UNITS`; None means energy/length^3.

    Raises:
        UserError: a unit is unknown; the message names it and the nearest known one.
    """

    energy: str = "eV"
    length: str = "angstrom"
    stress: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "energy", energy_unit(self.energy))
        object.__setattr__(self, "length", length_unit(self.length))
        if self.stress is not None:
            object.__setattr__(self, "stress", stress_unit(self.stress))

    def factors(self, to: "Units") -> Factors:
        """The factors that convert numbers in these units to the units ``to``."""
        energy = ENERGY_UNITS[self.energy] / ENERGY_UNITS[to.energy]
        length = LENGTH_UNITS[self.length] / LENGTH_UNITS[to.length]
        stress = self._stress_value() / to._stress_value()
        return Factors(energy=energy, length=length, forces=energy / length, virial=energy, stress=stress)

    def _stress_value(self) -> float:
        return STRESS_UNITS[self.stress or f"{self.energy}/{self.length}^3"]

    def to_json(self) -> str:
        """JSON text that :meth:`from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Units":
        """Read what :meth:`to_json` wrote.

        Raises:
            UserError: the text is not JSON, or not the JSON of units, or a unit is unknown.
        """
        try:
            content = json.loads(text)
            return cls(content["energy"], content["length"], content.get("stress"))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UserError(f"units {text!r}: not readable; expected JSON such as {cls().to_json()}") from None


def energy_unit(word: str) -> str:
    """The name in :data:`ENERGY_UNITS` that ``word`` spells; UserError if none."""
    return _named("energy", word, ENERGY_UNITS)


def length_unit(word: str) -> str:
    """The name in :data:`LENGTH_UNITS` that ``word`` spells; UserError if none."""
    return _named("length", word, LENGTH_UNITS)


def stress_unit(word: str) -> str:
    """The name in :data:`STRESS_UNITS` that ``word`` spells; UserError if none."""
    return _named("stress", word, STRESS_UNITS)


def _named(kind: str, word: str, units: dict[str, float]) -> str:
    name = _plain(word)
    if name not in units:
        energy, slash, volume = name.rpartition("/")
        if slash and volume.endswith("^3"):
            name = f"{_known(energy, ENERGY_UNITS)}/{_known(volume.removesuffix('^3'), LENGTH_UNITS)}^3"
        else:
            name = _known(name, units)
    if name not in units:
        nearest = _nearest(name, units)
        raise UserError(f"unknown {kind} unit {word!r}; did you mean {nearest!r}? Known: {', '.join(units)}")
    return name


def _plain(word: str) -> str:
    """One way of writing powers and quotients: ``kcal mol^-1`` -> ``kcal/mol``, ``eV Å**-3`` -> ``eV/Å^3``."""
    text = word.strip().replace("**", "^").replace("³", "^3")
    text = re.sub(r"\s+(\w+?)\^?-(\d)", r"/\1^\2", text)
    return re.sub(r"\^1\b", "", text).replace(" ", "")


def _known(word: str, units: dict[str, float]) -> str:
    """The name that ``word`` spells, also in other case, else ``word`` itself."""
    names = ALIASES | {name: name for name in units}
    # The case of an m tells milli from mega, so that meV and MPa are known in their own case only.
    folded = {alias.casefold(): name for alias, name in names.items() if name not in ("meV", "MPa")}
    found = names.get(word) or folded.get(word.casefold(), word)
    return found if found in units else word


def _nearest(word: str, units: dict[str, float]) -> str:
    spellings = {alias.casefold(): name for alias, name in ALIASES.items() if name in units}
    spellings |= {name.casefold(): name for name in units}
    return spellings[difflib.get_close_matches(word.casefold(), spellings, n=1, cutoff=0.0)[0]]
