"""Batches as PyTorch reads them: nothing padded, every pair in both directions."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from forgefield.data.batching import Capacity, Labels, centered_positions, pack_labels
from forgefield.data.neighbors import NeighborPairs
from forgefield.data.packing import PackedNeighbors
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


class TorchBatch(NamedTuple):
    """Graph and labels; the labels are tensors under the names of :class:`~forgefield.data.batching.Labels`."""

    graph: TorchGraph
    labels: Labels


def micro_batches(batch: TorchBatch, count: int) -> list[TorchBatch]:
    """The structures of a batch in at most ``count`` parts of about as many atoms and edges, in their order."""
    if count == 1:
        return [batch]
    graph = batch.graph
    n_edges = torch.bincount(graph.atom_structure[graph.sender], minlength=len(graph.n_atoms))
    atoms, edges = (torch.nn.functional.pad(n.cumsum(0), (1, 0)) for n in (graph.n_atoms, n_edges))
    work = atoms + edges
    wanted = work[-1] * torch.arange(1, count) / count
    nearest = (work - wanted[:, None]).abs().argmin(dim=1)
    cuts = sorted({0, *nearest.tolist(), len(n_edges)})
    return [
        _structures(batch, slice(a, b), slice(atoms[a], atoms[b]), slice(edges[a], edges[b])) for a, b in pairwise(cuts)
    ]


def _structures(batch: TorchBatch, structures: slice, atoms: slice, edges: slice) -> TorchBatch:
    """A part of a batch, which shares its memory where nothing is counted from another start."""
    graph, labels = batch
    part = TorchGraph(
        positions=graph.positions[atoms],
        species=graph.species[atoms],
        atom_structure=graph.atom_structure[atoms] - structures.start,
        sender=graph.sender[edges] - atoms.start,
        receiver=graph.receiver[edges] - atoms.start,
        shift=graph.shift[edges],
        n_atoms=graph.n_atoms[structures],
    )
    of_structures = {name: value[structures] for name, value in labels._asdict().items() if name != "forces"}
    return TorchBatch(part, Labels(forces=labels.forces[atoms], **of_structures))


class DirectedNeighbors(PackedNeighbors):
    """Makes a :class:`TorchBatch` of structures and their neighbor lists."""

    def pack(
        self,
        structures: Sequence[Structure],
        pairs: Sequence[NeighborPairs],
        capacity: Capacity,
        dtype: np.dtype,
    ) -> TorchBatch:
        """Join structures, neighbor lists and labels; ``capacity`` is a limit that nothing is padded to."""
        n_atoms = np.array([len(s) for s in structures], dtype=np.int64)
        exact = capacity._replace(structures=len(structures), atoms=int(n_atoms.sum()))
        labels = pack_labels(structures, self.shifts, exact, dtype)
        return TorchBatch(self._graph(structures, pairs, n_atoms, dtype), Labels(*map(torch.from_numpy, labels)))

    def _graph(
        self, structures: Sequence[Structure], pairs: Sequence[NeighborPairs], n_atoms: np.ndarray, dtype: np.dtype
    ) -> TorchGraph:
        index_of = np.zeros(max(self.elements) + 1, dtype=np.int64)
        index_of[list(self.elements)] = np.arange(len(self.elements))
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
