"""Structures that follow each other in common arrays, for what would cost much more one by one."""

from collections.abc import Sequence

import numpy as np

from forgefield.data.structures import Structure


class Joined:
    """A few structures, at least one, and their numbers in one array each.

    Attributes:
        structures: (b,) as they came.
        sizes, starts: (b,) atoms of each, and the place of its first one in the arrays of atoms.
        owner: (n,) which structure an atom is in.
        numbers, positions: (n,) and (n, 3) of all atoms.
        cells, pbc: (b, 3, 3) and (b, 3).
        has_energy, has_forces, has_virial: (b,) whether a structure has the label.
        energies, forces, virials: (b,), (n, 3) and (b, 3, 3); 0 where there is no such label.
    """

    def __init__(self, structures: Sequence[Structure]) -> None:
        self.structures = structures
        self.sizes = np.array([len(s.numbers) for s in structures])
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.owner = np.repeat(np.arange(len(structures)), self.sizes)
        self.numbers = np.concatenate([s.numbers for s in structures])
        self.positions = np.concatenate([s.positions for s in structures])
        self.cells, self.pbc = np.array([s.cell for s in structures]), np.array([s.pbc for s in structures])
        energies, forces, virials = zip(*((s.energy, s.forces, s.virial) for s in structures), strict=True)
        self.has_energy, self.has_forces, self.has_virial = (
            np.array([label is not None for label in labels]) for labels in (energies, forces, virials)
        )
        self.energies = np.array([0.0 if energy is None else energy for energy in energies])
        if self.has_forces.all():
            self.forces = np.concatenate(forces)
        else:
            self.forces = np.zeros(self.positions.shape)
            if self.has_forces.any():
                self.forces[self.has_forces[self.owner]] = np.concatenate([f for f in forces if f is not None])
        zero = np.zeros((3, 3))
        self.virials = np.array([zero if virial is None else virial for virial in virials])

    def __len__(self) -> int:
        return len(self.structures)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """(b, ...) for each structure, of a value (n, ...) for each atom."""
        return np.add.reduceat(values, self.starts)
