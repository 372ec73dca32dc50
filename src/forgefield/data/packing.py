"""How structures become packed batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from ase.data import chemical_symbols

from forgefield.data.batching import Batch, Capacity, pack_graph, pack_labels
from forgefield.data.neighbors import NeighborPairs, neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.errors import FrameError


@dataclass(frozen=True)
class PackedNeighbors:
    """How structures become packed batches with neighbor lists.

    Attributes:
        cutoff: Å; pairs of atoms closer than this are listed.
        elements: atomic numbers in the order of the model's species index.
        energy_shifts: eV by atomic number, subtracted from energy labels in float64; none without it.
    """

    cutoff: float
    elements: tuple[int, ...]
    energy_shifts: Mapping[int, float] = field(default_factory=dict)

    @property
    def shifts(self) -> dict[int, float]:
        """The energy shift of every element, eV."""
        return {z: self.energy_shifts.get(z, 0.0) for z in self.elements}

    def pairs(self, structure: Structure) -> NeighborPairs:
        """The neighbor list of one structure.

        Raises:
            UserError: the structure has an element that is not among ``elements``.
        """
        unknown = sorted(set(structure.numbers.tolist()) - set(self.elements))
        if unknown:
            raise FrameError(
                structure.source_index,
                f"the model does not know {_symbols(unknown)} (it knows "
                f"{_symbols(self.elements)}); leave such frames out or choose a model for these elements",
            )
        return neighbor_pairs(structure, self.cutoff)

    def pack(
        self,
        structures: Sequence[Structure],
        pairs: Sequence[NeighborPairs],
        capacity: Capacity,
        dtype: np.dtype,
    ) -> Batch:
        """Pack structures with their neighbor lists and labels into arrays of the given capacity."""
        graph = pack_graph(structures, pairs, self.elements, self.cutoff, capacity, dtype)
        return Batch(graph, pack_labels(structures, self.shifts, capacity, dtype))


def _symbols(numbers: Sequence[int]) -> str:
    return ", ".join(chemical_symbols[z] for z in numbers)
