"""Structures as PyTorch reads them: nothing padded, every pair in both directions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from forgefield.data.batching import centered_positions
from forgefield.data.neighbors import NeighborPairs
from forgefield.data.structures import Structure


class TorchGraph(NamedTuple):
    """What a model reads: B structures with N atoms and E directed edges, lengths in Å.

    Attributes:
        positions: (N, 3), of each structure from their mean.
        species: (N,) index into the model's elements.
        atom_structure: (N,) structure of each atom, ascending.
        sender, receiver: (E,) atoms; vector = positions[receiver] - positions[sender] + shift.
        shift: (E, 3).
        n_atoms: (B,).
    """

    positions: Tensor
    species: Tensor
    atom_structure: Tensor
    sender: Tensor
    receiver: Tensor
    shift: Tensor
    n_atoms: Tensor

    @property
    def vectors(self) -> Tensor:
        """(E, 3) from sender to receiver."""
        return self.positions[self.receiver] - self.positions[self.sender] + self.shift


def torch_graph(
    structures: Sequence[Structure], pairs: Sequence[NeighborPairs], elements: Sequence[int], dtype: np.dtype | type
) -> TorchGraph:
    """Join structures and their neighbor lists; ``elements`` are atomic numbers in the order of the species index."""
    index_of = np.zeros(max(elements) + 1, dtype=np.int64)
    index_of[list(elements)] = np.arange(len(elements))
    n_atoms = np.array([len(s) for s in structures], dtype=np.int64)
    offsets = np.cumsum(n_atoms) - n_atoms
    # one structure after another, each with its pairs in one direction, then in the other
    sender = [np.concatenate([p.sender, p.receiver]) + o for p, o in zip(pairs, offsets, strict=True)]
    receiver = [np.concatenate([p.receiver, p.sender]) + o for p, o in zip(pairs, offsets, strict=True)]
    shift = [np.concatenate([p.shift, -p.shift]) for p in pairs]
    return TorchGraph(
        positions=_tensor([centered_positions(s) for s in structures], dtype),
        species=_tensor([index_of[s.numbers] for s in structures], np.int64),
        atom_structure=torch.from_numpy(np.repeat(np.arange(len(structures)), n_atoms)),
        sender=_tensor(sender, np.int64),
        receiver=_tensor(receiver, np.int64),
        shift=_tensor(shift, dtype),
        n_atoms=torch.from_numpy(n_atoms),
    )


def _tensor(parts: Sequence[np.ndarray], dtype: np.dtype | type) -> Tensor:
    return torch.from_numpy(np.concatenate(parts).astype(dtype))
