"""Streaming the structures of a store, and their labels as numbers: NaN where a label is absent or has weight 0."""

from collections.abc import Iterator

import numpy as np

from forgefield.data.store import Store
from forgefield.data.structures import Structure

READ_AHEAD = 256


def iter_structures(store: Store, rows: range | None = None) -> Iterator[Structure]:
    """All structures in the order of their source, or a range of these, few of them in memory at a time."""
    rows = range(len(store)) if rows is None else rows
    for start in range(rows.start, rows.stop, READ_AHEAD):
        yield from store.read(store.in_source_order[start : min(start + READ_AHEAD, rows.stop)])


def reference_energy(structure: Structure) -> float:
    """Total energy, eV."""
    return np.nan if structure.energy is None else structure.energy


def reference_forces(structure: Structure) -> np.ndarray:
    """(n, 3) eV/Å."""
    return np.full((len(structure), 3), np.nan) if structure.forces is None else structure.forces


def reference_stress(structure: Structure) -> np.ndarray:
    """(3, 3) eV/Å^3, minus the virial over the volume; NaN also for a structure without a periodic cell."""
    if structure.virial is None or not structure.pbc.any() or structure.volume == 0:
        return np.full((3, 3), np.nan)
    return -structure.virial / structure.volume
