"""Energies, forces and virials of a batch in PyTorch."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch

from forgefield.data.neighbors import NeighborPairs
from forgefield.data.structures import Structure
from forgefield.models.inference import Computed, Wanted
from forgefield.models.potential import Potential
from forgefield.models.pytorch.graphs import TorchGraph, torch_graph
from forgefield.models.pytorch.interface import torch_model


class TorchBatches:
    """A :class:`~forgefield.models.inference.BatchFunction` on a GPU where there is one, else on the CPU."""

    def __init__(self, potential: Potential, dtype: np.dtype, wanted: Wanted) -> None:
        self.potential, self.dtype, self.wanted = potential, dtype, wanted
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        with _quickly_built(potential):
            model = torch_model(potential, getattr(torch, dtype.name))
        self._model = model.to(self._device).eval().requires_grad_(False)

    def __call__(self, structures: Sequence[Structure], pairs: Sequence[NeighborPairs]) -> Computed:
        graph = torch_graph(structures, pairs, self.potential.elements, self.dtype)
        graph = TorchGraph(*(tensor.to(self._device) for tensor in graph))
        if self.wanted == "energy":
            with torch.no_grad():
                return Computed(_float64(self._model.energies(graph)), None, None)
        predicted = self._model(graph, self.wanted == "virial")
        return Computed(*(None if x is None else _float64(x) for x in predicted))

    def forget_sizes(self) -> None:
        """Nothing to do: each batch has its own size."""


def _quickly_built(potential: Potential) -> AbstractContextManager[None]:
    if potential.architecture != "mace":
        return nullcontext()
    from forgefield.models.mace.torch_reference import not_scripted

    return not_scripted()


def _float64(values: torch.Tensor) -> np.ndarray:
    return values.detach().cpu().numpy().astype(np.float64)
