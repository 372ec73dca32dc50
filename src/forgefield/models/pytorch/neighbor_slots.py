"""Edges by the atom at which they end, so that sums over neighbors are products of matrices."""

import torch
from torch import Tensor

# fewer leave more slots empty, more make smaller matrices
PARTS = 4


class NeighborSlots:
    """A row of slots for each atom, of the same length for those with about as many neighbors.

    Args:
        receiver: (E,) atom at which each edge ends.
        n_atoms: number of atoms N.

    Attributes:
        edges: (S,) edge in each slot; any, where none is.
        filled: (S,) whether one is.
    """

    def __init__(self, receiver: Tensor, n_atoms: int) -> None:
        edges = torch.argsort(receiver, stable=True)
        counts = torch.bincount(receiver, minlength=n_atoms)
        starts = counts.cumsum(0) - counts
        atoms = torch.argsort(counts, stable=True)
        self._order = torch.argsort(atoms)
        self._shapes, places, filled = [], [], []
        for part in atoms.chunk(PARTS):
            place = torch.arange(int(counts[part].max()), device=receiver.device)
            filled.append(place < counts[part, None])
            places.append((starts[part, None] + place).where(filled[-1], torch.zeros_like(place)))
            self._shapes.append(tuple(filled[-1].shape))
        self.edges = edges[torch.cat([place.flatten() for place in places])]
        self.filled = torch.cat([slots.flatten() for slots in filled])

    def sums(self, left: Tensor, right: Tensor) -> Tensor:
        """(N, L, R) sums of outer products: of ``left`` (S, A, L) and ``right`` (S, A, R) over slots and A."""
        sizes = [rows * columns for rows, columns in self._shapes]
        pairs = zip(self._shapes, left.split(sizes), right.split(sizes), strict=True)
        found = [_rows(a, shape).mT @ _rows(b, shape) for shape, a, b in pairs]
        return torch.cat(found).index_select(0, self._order)


def _rows(values: Tensor, shape: tuple[int, int]) -> Tensor:
    return values.reshape(shape[0], shape[1] * values.shape[1], values.shape[2])
