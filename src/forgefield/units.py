"""Units of energy, length, forces, stress and virials, and the factors between them.

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

FORCE_UNITS: dict[str, float] = {
    f"{energy}/{length}": e / x for energy, e in ENERGY_UNITS.items() for length, x in LENGTH_UNITS.items()
}
"""Name -> value in eV/Å."""

PRESSURES = {"Pa": 1.0, "MPa": 1e6, "GPa": 1e9, "bar": 1e5, "kbar": 1e8, "atm": 101325.0}  # Pa
STRESS_UNITS: dict[str, float] = {
    f"{energy}/{length}^3": e / x**3 for energy, e in ENERGY_UNITS.items() for length, x in LENGTH_UNITS.items()
} | {name: value * PASCAL for name, value in PRESSURES.items()}
"""Name -> value in eV/Å^3."""

UNITS: dict[str, dict[str, float]] = {
    "energy": ENERGY_UNITS,
    "length": LENGTH_UNITS,
    "forces": FORCE_UNITS,
    "virial": ENERGY_UNITS,
    "stress": STRESS_UNITS,
}
"""Kind of quantity -> the units it may have."""

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
    """The units of a set of structures.

    Args:
        energy: a name in :data:`ENERGY_UNITS`, or a usual other spelling of it, which is replaced by the name.
        length: likewise in :data:`LENGTH_UNITS`.
        stress: likewise in :data:`STRESS_UNITS`; None means energy/length^3.
        forces: likewise in :data:`FORCE_UNITS`; None means energy/length.
        virial: likewise in :data:`ENERGY_UNITS`; None means the unit of energy.

    Raises:
        UserError: a unit is unknown; the message names it and the nearest known one.
    """

    energy: str = "eV"
    length: str = "angstrom"
    stress: str | None = None
    forces: str | None = None
    virial: str | None = None

    def __post_init__(self) -> None:
        for kind, word in asdict(self).items():
            if word is not None:
                object.__setattr__(self, kind, unit_name(kind, word))

    def name(self, kind: str) -> str:
        """The unit of energy, length, stress, forces or virial, also where it follows from others."""
        derived = {
            "stress": f"{self.energy}/{self.length}^3",
            "forces": f"{self.energy}/{self.length}",
            "virial": self.energy,
        }
        return getattr(self, kind) or derived[kind]

    def names(self) -> dict[str, str]:
        """The unit of every kind of quantity."""
        return {kind: self.name(kind) for kind in UNITS}

    def factors(self, to: "Units") -> Factors:
        """The factors that convert numbers in these units to the units ``to``."""
        return Factors(**{kind: table[self.name(kind)] / table[to.name(kind)] for kind, table in UNITS.items()})

    def to_json(self) -> str:
        """JSON text that :meth:`from_json` reads."""
        return json.dumps({kind: word for kind, word in asdict(self).items() if word})

    @classmethod
    def from_json(cls, text: str) -> "Units":
        """Read what :meth:`to_json` wrote.

        Raises:
            UserError: the text is not JSON, or not the JSON of units, or a unit is unknown.
        """
        try:
            content = json.loads(text)
            optional = {kind: content.get(kind) for kind in ("stress", "forces", "virial")}
            return cls(content["energy"], content["length"], **optional)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UserError(f"units {text!r}: not readable; expected JSON such as {cls().to_json()}") from None


def unit_name(kind: str, word: str) -> str:
    """The name in ``UNITS[kind]`` that ``word`` spells.

    Raises:
        UserError: it spells none; the message names the nearest.
    """
    units, name = UNITS[kind], _plain(word)
    if name not in units:
        energy, slash, length = name.rpartition("/")
        power = "^3" if length.endswith("^3") else ""
        quotient = f"{_known(energy, ENERGY_UNITS)}/{_known(length.removesuffix('^3'), LENGTH_UNITS)}{power}"
        name = quotient if slash and quotient in units else _known(name, units)
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
