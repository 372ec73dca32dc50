"""Energies, forces and virials of a batch in PyTorch."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch

from forgefield.models.batch_function import Computed, Group, Wanted
from forgefield.models.potential import Potential
from forgefield.models.pytorch.graphs import TorchGraph, torch_graph
from forgefield.models.pytorch.interface import torch_model


class TorchBatches:
    """A :class:`~forgefield.models.batch_function.BatchFunction` on a GPU where there is one, else on the CPU."""

    devices = 1

    def __init__(self, potential: Potential, dtype: np.dtype, wanted: Wanted) -> None:
        self.potential, self.dtype, self.wanted = potential, dtype, wanted
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        with _quickly_built(potential):
            model = torch_model(potential, getattr(torch, dtype.name))
        self._model = model.to(self._device).eval().requires_grad_(False)

    def alike(self, potential: Potential) -> "TorchBatches":
        return TorchBatches(potential, self.dtype, self.wanted)

    def pack(self, groups: Sequence[Group]) -> TorchGraph:
        (group,) = groups
        return torch_graph(*group, self.potential.elements, self.dtype)

    def compute(self, packed: TorchGraph) -> list[Computed]:
        graph = TorchGraph(*(tensor.to(self._device) for tensor in packed))
        if self.wanted == "energy":
            with torch.no_grad():
                return [Computed(_float64(self._model.energies(graph)), None, None)]
        predicted = self._model(graph, self.wanted == "virial")
        return [Computed(*(None if x is None else _float64(x) for x in predicted))]

    def forget_sizes(self) -> None:
        """Nothing to do: each batch has its own size."""


def _quickly_built(potential: Potential) -> AbstractContextManager[None]:
    if potential.architecture != "mace":
        return nullcontext()
    from forgefield.models.mace.torch_reference import not_scripted

    return not_scripted()


def _float64(values: torch.Tensor) -> np.ndarray:
    return values.detach().cpu().numpy().astype(np.float64)
