"""Ranges of what is measured in structures, without keeping them."""

from collections import Counter
from typing import Any

import numpy as np
from ase.data import chemical_symbols
from scipy.spatial import cKDTree

from forgefield.data.neighbors import is_flat, neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.units import Units

MEASURED = 100  # structures whose shortest distance is looked for


class Ranges:
    """Least and largest of sizes and magnitudes, in the numbers of the file; fed structure by structure."""

    def __init__(self) -> None:
        self.n = 0
        self._elements: Counter[int] = Counter()
        self._periodic = 0
        self._least: dict[str, float] = {}
        self._most: dict[str, float] = {}
        self._force_squares, self._force_numbers = 0.0, 0

    def add(self, structure: Structure) -> None:
        """Take one structure in."""
        n = len(structure)
        self.n += 1
        self._elements.update(np.unique(structure.numbers).tolist())
        self._range("atoms", n)
        if structure.pbc.any():
            self._periodic += 1
            for length in np.linalg.norm(structure.cell[structure.pbc], axis=1):
                self._range("cell", length)
        if structure.energy is not None:
            self._range("energy_per_atom", structure.energy / n)
        if structure.forces is not None:
            self._range("force", np.linalg.norm(structure.forces, axis=1).max())
            self._force_squares += float(np.sum(structure.forces**2))
            self._force_numbers += structure.forces.size
        if self.n <= MEASURED and (shortest := _shortest(structure)) is not None:
            self._range("distance", shortest)

    def _range(self, name: str, value: float) -> None:
        self._least[name] = min(value, self._least.get(name, value))
        self._most[name] = max(value, self._most.get(name, value))

    def result(self, units: Units) -> dict[str, Any]:
        """Everything in eV and Å, where the numbers were in ``units``; what does not occur is None."""
        factors = units.factors(Units())
        rms = np.sqrt(self._force_squares / self._force_numbers) if self._force_numbers else None
        return {
            "atoms": self._both("atoms", 1),
            "elements": [chemical_symbols[z] for z in sorted(self._elements) if 0 < z < len(chemical_symbols)],
            "periodic": self._periodic,
            "cell": self._both("cell", factors.length),
            "shortest_distance": self._both("distance", factors.length),
            "energy_per_atom": self._both("energy_per_atom", factors.energy),
            "force_rms": None if rms is None else float(rms * factors.forces),
            "force_max": None if rms is None else float(self._most["force"] * factors.forces),
        }

    def _both(self, name: str, factor: float) -> list[float] | None:
        if name not in self._least:
            return None
        return [self._least[name] * factor, self._most[name] * factor]


def _shortest(structure: Structure) -> float | None:
    """The shortest distance between two atoms, periodic images included, or None where there is none."""
    if not np.isfinite(structure.positions).all() or is_flat(structure):
        return None
    bounds = np.linalg.norm(structure.cell[structure.pbc], axis=1).tolist()  # an atom and its own image
    if len(structure) > 1:
        bounds.append(cKDTree(structure.positions).query(structure.positions, k=2)[0][:, 1].min())
    shortest = min(bounds, default=0.0)
    if shortest > 0 and structure.pbc.any():
        pairs = neighbor_pairs(structure, 1.001 * shortest)
        vectors = structure.positions[pairs.receiver] - structure.positions[pairs.sender] + pairs.shift
        shortest = np.linalg.norm(vectors, axis=1).min()
    return float(shortest) if bounds else None
