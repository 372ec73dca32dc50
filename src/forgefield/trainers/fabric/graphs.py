"""Batches as PyTorch reads them: graphs with their labels, nothing padded."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from forgefield.data.batching import Capacity, Labels, pack_labels
from forgefield.data.neighbors import NeighborPairs
from forgefield.data.packing import PackedNeighbors
from forgefield.data.structures import Structure
from forgefield.models.pytorch.graphs import TorchGraph, torch_graph


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
        exact = capacity._replace(structures=len(structures), atoms=sum(map(len, structures)))
        labels = pack_labels(structures, self.shifts, exact, dtype)
        graph = torch_graph(structures, pairs, self.elements, dtype)
        return TorchBatch(graph, Labels(*map(torch.from_numpy, labels)))
