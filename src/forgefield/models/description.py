"""What ``model.json`` says of a potential."""

from pathlib import Path
from typing import Annotated, Any

from ase.data import atomic_numbers
from pydantic import AfterValidator, Field

from forgefield.config.base import Positive, Section
from forgefield.config.contents import Finite, checked
from forgefield.errors import UserError
from forgefield.files import read_json

FORMAT = 1
UNITS = {"energy": "eV", "length": "angstrom"}
AGAIN = "import or train the model again"


def _elements(shifts: dict[str, float]) -> dict[str, float]:
    unknown = [symbol for symbol in shifts if atomic_numbers.get(symbol, 0) < 1]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no chemical symbol")
    return shifts


EnergyShifts = Annotated[dict[str, Finite], Field(min_length=1), AfterValidator(_elements)]
"""eV by chemical symbol."""


class Description(Section):
    """The content of ``model.json``."""

    forgefield_format: int
    """the version of the format"""

    architecture: str
    """the name of the model's architecture"""

    config: dict[str, Any]
    """the architecture's own settings"""

    energy_shifts: EnergyShifts
    """eV by chemical symbol"""

    cutoff: Positive
    """the largest distance of interacting atoms, Å"""

    units: dict[str, str]
    """the units of the model's numbers"""

    pretrained: bool
    """false for random parameters"""

    source: dict[str, Any]
    """where the model came from"""

    created_by: str
    """the program that wrote it"""


def read_description(path: Path) -> Description:
    """The content of a ``model.json``.

    Raises:
        UserError: the file is damaged, of another format or in other units.
    """
    content = read_json(path, AGAIN)
    if content.get("forgefield_format") != FORMAT:
        raise UserError(f"{path}: model format {content.get('forgefield_format')}, expected {FORMAT}; {AGAIN}")
    if content.get("units") != UNITS:
        raise UserError(f"{path}: units {content.get('units')}, expected {UNITS}; {AGAIN}")
    return checked(path, content, Description, AGAIN)
