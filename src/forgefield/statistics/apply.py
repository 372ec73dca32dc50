"""From statistics back to a potential that starts training from them."""

from dataclasses import replace
from typing import Any

from ase.data import atomic_numbers

from forgefield.models.potential import Potential


def apply_statistics(potential: Potential, statistics: dict[str, Any]) -> Potential:
    """The potential with refitted energy shifts; a model from scratch also learns the data's force scale and density.

    A pretrained model keeps everything but its energy shifts. One with random parameters gets forces of the size of
    the reference by its output scale, and sums over neighbors of size one by its average neighbor count.
    """
    shifts = {atomic_numbers[s]: e for s, e in statistics["energy_shifts"].items()}
    refitted = replace(potential, energy_shifts={z: shifts[z] for z in potential.elements})
    if potential.pretrained:
        return refitted
    config = potential.config | {
        "scale": statistics["force_rms"] or 1.0,
        "shift": 0.0,
        "avg_num_neighbors": statistics["neighbors"]["average"] or 1.0,
    }
    return replace(refitted, config=config)
