"""Structures packed for energy functions of one structure at a time, such as those of jax_md."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from forgefield.data.batching import Batch, Capacity, pack_labels
from forgefield.data.neighbors import NeighborPairs
from forgefield.data.structures import Structure
from forgefield.errors import FrameError

NO_PAIRS = NeighborPairs(*(np.zeros((0, *tail), dtype) for tail, dtype in (((), int), ((), int), ((3,), float))))


class Samples(NamedTuple):
    """What such energy functions read: N atoms of B structures one after another, and A atoms in each at most.

    Attributes:
        positions: (N, 3), Å, as given; not centred, as a periodic box may start at the origin.
        species: (N,) atomic numbers; 0 for padding.
        atom_mask: (N,) 1 for real atoms, 0 for padding.
        atom_structure: (N,) structure of each atom; B - 1 for padding.
        n_atoms: (B,) real atoms of each structure; 0 for padding.
        slots: (A,) 0 to A - 1.
        box: (B, 3, 3) cell vectors as rows, Å; None where nothing is periodic.
    """

    positions: np.ndarray
    species: np.ndarray
    atom_mask: np.ndarray
    atom_structure: np.ndarray
    n_atoms: np.ndarray
    slots: np.ndarray
    box: np.ndarray | None


@dataclass(frozen=True)
class NeighborUpdates:
    """Packs structures without neighbor lists, which a list such as jax_md's makes from positions.

    Attributes:
        most_atoms: A, the atoms of the largest structure that the list was allocated for.
        overflows: whether the list has no room for the neighbors of a structure.
        energy_shifts: eV by atomic number, subtracted from energy labels.
    """

    most_atoms: int
    overflows: Callable[[Structure], bool]
    energy_shifts: Mapping[int, float] = field(default_factory=dict)

    @property
    def shifts(self) -> dict[int, float]:
        """The energy shift of every element, eV."""
        return {z: self.energy_shifts.get(z, 0.0) for z in range(1, 119)}

    def pairs(self, structure: Structure) -> NeighborPairs:
        """No pairs, once it is sure that the list holds those of the structure.

        Raises:
            UserError: it does not.
        """
        if len(structure) > self.most_atoms:
            raise FrameError(
                structure.source_index,
                f"{len(structure)} atoms, but nbrs_init was allocated for "
                f"{self.most_atoms}; allocate it with the largest structure",
            )
        if self.overflows(structure):
            raise FrameError(
                structure.source_index,
                "nbrs_init has no room for its neighbors; allocate it with extra_capacity, or with a denser structure",
            )
        return NO_PAIRS

    def pack(
        self, structures: Sequence[Structure], pairs: Sequence[NeighborPairs], capacity: Capacity, dtype: np.dtype
    ) -> Batch:
        """Pack structures and labels into arrays of the given capacity."""
        b, n = capacity.structures, capacity.atoms
        sizes = np.array([len(s) for s in structures], np.int32)
        real = int(sizes.sum())
        graph = Samples(
            positions=np.zeros((n, 3), dtype),
            species=np.zeros(n, np.int32),
            atom_mask=(np.arange(n) < real).astype(dtype),
            atom_structure=np.full(n, b - 1, np.int32),
            n_atoms=np.zeros(b, np.int32),
            slots=np.arange(self.most_atoms, dtype=np.int32),
            box=np.zeros((b, 3, 3), dtype) if any(s.pbc.any() for s in structures) else None,
        )
        graph.positions[:real] = np.concatenate([s.positions for s in structures])
        graph.species[:real] = np.concatenate([s.numbers for s in structures])
        graph.atom_structure[:real] = np.repeat(np.arange(len(structures)), sizes)
        graph.n_atoms[: len(structures)] = sizes
        if graph.box is not None:
            # an empty place has the first structure's box, as it is computed with that structure's atoms
            graph.box[:] = structures[0].cell
            graph.box[: len(structures)] = [s.cell for s in structures]
        return Batch(graph, pack_labels(structures, self.shifts, capacity, dtype))
