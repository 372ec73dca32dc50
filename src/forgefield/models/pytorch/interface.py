"""What a model must offer to be trained by this engine, and which model belongs to a potential."""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from forgefield.errors import UserError
from forgefield.models.potential import Potential
from forgefield.models.pytorch.graphs import TorchGraph


class Predicted(NamedTuple):
    """Energies (B,) in eV without energy shifts, forces (N, 3) in eV/Å, virials (B, 3, 3) in eV or None."""

    energy: Tensor
    forces: Tensor
    virial: Tensor | None


class TorchModel(Protocol):
    """A ``torch.nn.Module`` for one architecture.

    While it is in training mode, forces and virials can be differentiated again.
    """

    def forward(self, graph: TorchGraph, virial: bool) -> Predicted: ...

    def potential_parameters(self) -> dict[str, torch.nn.Parameter]:
        """What training changes, under the names and in the order of the potential's parameters."""
        ...


def torch_model(potential: Potential, dtype: torch.dtype) -> TorchModel:
    """The model of a potential.

    Raises:
        UserError: the architecture has no PyTorch implementation.
    """
    if potential.architecture != "mace":
        raise UserError(f"architecture {potential.architecture!r} does not run on PyTorch; only 'mace' does")
    from forgefield.models.pytorch.mace import MaceModel

    return MaceModel(potential, dtype)
