"""Do energies and forces agree? Between two frames of a trajectory the energy falls by the work of the forces.

The slope of dE against -F·dR, with the mean F of both frames (exact where the energy is quadratic), is 1 for units that
match, whatever the method of calculation. Where the cell changes as well, the stress does work, too. Frames that do not
follow each other give no correlation, and so no verdict.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from forgefield.data.structures import Structure
from forgefield.units import ENERGY_UNITS, FORCE_UNITS, Units

NEAR = 0.2  # Å; root mean square displacement between frames that can follow each other
STRAINED = 0.02  # relative change of a cell between such frames, at most
STRETCH, EVERY = 100, 10  # of a long source, the first hundred frames in every thousand are looked at
AT_ONCE = 1000  # pairs judged together, so that one file of several is found that is in another unit
FEWEST = 10  # pairs in a file, below which those of the next file are judged with them
LEAST_CORRELATION, CHANCE = 0.95, 1e-6  # of a verdict, and the probability that unrelated numbers lead to it
BEYOND = 1.6  # times 1 or less than 1 over it is a contradiction; the bohr is 0.53 Å, and steep walls give 0.75
TOLERANCE = 0.1  # relative, in which a unit explains a slope


class Slope(NamedTuple):
    """The slope of dE against -F·dR through the origin, with its correlation and the number of pairs of frames."""

    slope: float
    correlation: float
    pairs: int

    @property
    def is_certain(self) -> bool:
        """Whether so many pairs are so well correlated that it cannot be chance."""
        unexplained = 1 - min(1.0, self.correlation**2)
        return abs(self.correlation) > LEAST_CORRELATION and unexplained ** ((self.pairs - 1) / 2) < CHANCE

    @property
    def is_contradiction(self) -> bool:
        """Whether it is certainly not 1."""
        return self.is_certain and not 1 / BEYOND < self.slope < BEYOND


def slope(structures: Iterable[Structure]) -> Slope:
    """The slope over all pairs of structures that follow each other, in any units of energy, length and energy/length.

    Args:
        structures: in the order of their source, in eV and Å, or nearly so.
    """
    pairs = _Pairs()
    for structure in structures:
        pairs.add(structure)
    return pairs.slope()


class Consistency:
    """Looks at some of the structures of a source, in bounded time and memory; fed structure by structure, eV and Å.

    Attributes:
        found: the first slope that is certainly not 1, else the last that is certain, else None.
        n_atoms: of the structures that it was found at.
    """

    def __init__(self) -> None:
        self._pairs = _Pairs()
        self.found: Slope | None = None
        self.n_atoms = 0
        self._is_strained, self._first = False, 0

    def wants(self, indices: np.ndarray) -> np.ndarray:
        """(b,) which of the frames with these numbers (b,) would be looked at."""
        return ((indices - self._first) // STRETCH % EVERY == 0) & (not self.is_contradiction)

    def add(self, structure: Structure) -> None:
        if not self.wants(np.array(structure.source_index)):
            return
        self._pairs.add(structure)
        if self._pairs.n >= AT_ONCE:
            self._judge()

    def end_file(self, next_frame: int) -> None:
        """Judge the pairs of a file, if there are enough; the next one begins with the frame of that number."""
        self._first = next_frame
        if self._pairs.n >= FEWEST:
            self._judge()

    def contradictions(self, units: Units) -> list[str]:
        """The contradiction in words, with the units that would not lead to it; empty without one.

        Args:
            units: those that the source was read in.
        """
        self._judge()
        if not self.is_contradiction:
            return []
        found = self.found
        fits = " or ".join(explanations(found.slope, units, self.n_atoms)) or "no unit known here"
        if self._is_strained:
            fits += ", or stresses, which count where cells change, of another unit or sign (units.stress, keys.stress)"
        return [
            f"energies do not fit the forces: over {found.pairs} pairs of frames that follow each other, energies "
            f"change by {found.slope:.4g} times the forces' work (correlation {found.correlation:.3f}), where 1 is "
            f"expected; that fits {fits}"
        ]

    @property
    def is_contradiction(self) -> bool:
        """Whether one was found so far."""
        return self.found is not None and self.found.is_contradiction

    def _judge(self) -> None:
        slope = self._pairs.slope()
        if slope.is_certain and not self.is_contradiction:
            self.found, self.n_atoms, self._is_strained = slope, self._pairs.n_atoms, self._pairs.is_strained
        self._pairs = _Pairs()


def explanations(slope: float, units: Units, n_atoms: int) -> list[str]:
    """What would explain a slope of numbers read in ``units``, as settings where there are some, the nearest first."""
    size, energy, forces = abs(slope), units.energy, units.name("forces")
    found = [(abs(size * n_atoms - 1), "energies per atom, where total energies are expected")]
    for name, value in ENERGY_UNITS.items():
        found.append((abs(ENERGY_UNITS[energy] / size / value - 1), f"units: {{energy: {name}, forces: {forces}}}"))
    for name, value in FORCE_UNITS.items():
        found.append((abs(FORCE_UNITS[forces] * size / value - 1), f"units: {{energy: {energy}, forces: {name}}}"))
    fitting = list(dict.fromkeys(text for distance, text in sorted(found) if distance < TOLERANCE))
    if slope > 0:
        return fitting
    opposite = "forces of the opposite sign (put a minus before the key, in keys.forces)"
    return [f"{opposite} and {text}" for text in fitting if abs(size - 1) > TOLERANCE] or [opposite]


class _Pairs:
    """Sums over pairs of structures that follow each other."""

    def __init__(self) -> None:
        self.n, self.n_atoms, self.is_strained, self._previous = 0, 0, False, None
        self._changes_work = self._changes_squared = self._work_squared = 0.0

    def add(self, structure: Structure) -> None:
        if structure.energy is None or structure.forces is None:
            return
        before, self._previous = self._previous, structure
        if before is None or not _same_system(before, structure):
            return
        steps, strain = _steps(before, structure)
        if not 0 < np.vdot(steps, steps) < NEAR**2 * len(structure):
            return
        change, work = structure.energy - before.energy, -0.5 * np.vdot(before.forces + structure.forces, steps)
        if strain is not None:
            if np.abs(strain).max() > STRAINED:
                return
            self.is_strained = True
            work -= 0.5 * np.vdot(before.virial + structure.virial, strain)
        self.n, self.n_atoms = self.n + 1, len(structure)
        self._changes_work += change * work
        self._changes_squared += change**2
        self._work_squared += work**2

    def slope(self) -> Slope:
        if not self._work_squared * self._changes_squared:
            return Slope(0.0, 0.0, self.n)
        correlation = self._changes_work / np.sqrt(self._work_squared * self._changes_squared)
        return Slope(float(self._changes_work / self._work_squared), float(correlation), self.n)


def _same_system(a: Structure, b: Structure) -> bool:
    """Whether the work from one to the other is known; that of a changing cell is by the virials."""
    if not np.array_equal(a.numbers, b.numbers) or not np.array_equal(a.pbc, b.pbc):
        return False
    return np.array_equal(a.cell, b.cell) or (b.pbc.all() and a.virial is not None and b.virial is not None)


def _steps(before: Structure, after: Structure) -> tuple[np.ndarray, np.ndarray | None]:
    """(n, 3) displacements, the shortest where atoms may have been put back into the cell; (3, 3) strain of the cell.

    Where the cell changes, the displacements are those beside the ones that all atoms share with it.
    """
    if not after.pbc.all():
        return after.positions - before.positions, None
    cell = 0.5 * (before.cell + after.cell)
    scaled = after.positions @ np.linalg.inv(after.cell) - before.positions @ np.linalg.inv(before.cell)
    strain = np.linalg.solve(cell, after.cell - before.cell)
    return (scaled - np.round(scaled)) @ cell, strain if strain.any() else None
