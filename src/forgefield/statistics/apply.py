"""From statistics back to a potential that starts training from them."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ase.data import atomic_numbers, chemical_symbols

from forgefield.config.base import NonNegative
from forgefield.config.contents import Record, read_content
from forgefield.errors import UserError
from forgefield.models.description import EnergyShifts
from forgefield.models.flashcart import settings as flashcart
from forgefield.models.potential import Potential

AGAIN = "make it with `forgefield statistics`"


class StatisticsUnits(Record):
    """The section ``units``, which is the same in every such file."""

    energy: Literal["eV"]
    """of energy shifts"""

    forces: Literal["eV/angstrom"]
    """of the force scale"""

    length: Literal["angstrom"]
    """of the cutoff"""


class Neighbors(Record):
    """The section ``neighbors``."""

    average: NonNegative
    """the neighbors of an atom, on average"""


class Statistics(Record):
    """What a potential takes from a statistics file."""

    units: StatisticsUnits
    """the units of its numbers"""

    energy_shifts: EnergyShifts
    """eV by chemical symbol"""

    force_rms: NonNegative | None
    """the root mean square of the force components, eV/Å, or null"""

    neighbors: Neighbors
    """neighbor counts"""


def apply_statistics(potential: Potential, path: Path) -> Potential:
    """The potential with refitted energy shifts; a model from scratch also learns the data's force scale and density.

    A pretrained model keeps everything but its energy shifts. One with random parameters gets forces of the size of
    the reference by its output scale, and sums over neighbors of size one by its average neighbor count.

    Args:
        potential: the model of the statistics.
        path: the statistics file.

    Raises:
        UserError: the file is damaged, or of a model for other elements.
    """
    statistics = read_content(path, Statistics, AGAIN)
    shifts = {atomic_numbers[s]: e for s, e in statistics.energy_shifts.items()}
    if absent := [chemical_symbols[z] for z in potential.elements if z not in shifts]:
        raise UserError(f"{path}: energy_shifts: none for {', '.join(absent)}, which the model knows; {AGAIN}")
    refitted = replace(potential, energy_shifts={z: shifts[z] for z in potential.elements})
    if potential.pretrained:
        return refitted
    return _scaled(refitted, statistics.force_rms or 1.0, statistics.neighbors.average or 1.0)


def used_of(path: Path) -> dict[str, Any]:
    """What a potential takes from a statistics file, as JSON content."""
    return read_content(path, Statistics, AGAIN).model_dump(mode="json")


def _scaled(potential: Potential, force_rms: float, average_neighbors: float) -> Potential:
    """A model from scratch for forces of this size and so many neighbors of an atom."""
    if potential.architecture == "flashcart":
        config, buffers = flashcart.with_statistics(potential.config, potential.buffers, force_rms, average_neighbors)
        return replace(potential, config=config, buffers=buffers)
    if potential.architecture == "python":
        # imports torch
        from forgefield.models.plugin.building import with_statistics

        return with_statistics(potential, force_rms, average_neighbors)
    own = {"scale": force_rms, "shift": 0.0, "avg_num_neighbors": average_neighbors}
    return replace(potential, config=potential.config | own)
