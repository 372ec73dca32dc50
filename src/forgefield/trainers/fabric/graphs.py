"""Batches as PyTorch reads them: graphs with their labels, nothing padded."""

from collections.abc import Sequence
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
