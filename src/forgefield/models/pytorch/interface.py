"""What a model in PyTorch offers, and which model belongs to a potential."""

from importlib import import_module
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from forgefield.errors import UserError
from forgefield.models.potential import Potential
from forgefield.models.pytorch.graphs import TorchGraph

MODELS = {
    "mace": ("forgefield.models.pytorch.mace", "MaceModel"),
    "flashcart": ("forgefield.models.pytorch.flashcart", "FlashcartModel"),
    "python": ("forgefield.models.pytorch.plugin", "PluginModel"),
}
"""Module and class by architecture, each imported only where it is needed."""


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

    def energies(self, graph: TorchGraph) -> Tensor:
        """(B,) energies alone, in eV without energy shifts."""
        ...

    def potential_parameters(self) -> dict[str, torch.nn.Parameter]:
        """What training changes, under the names and in the order of the potential's parameters."""
        ...


def torch_model(potential: Potential, dtype: torch.dtype) -> TorchModel:
    """The model of a potential.

    Raises:
        UserError: the architecture is unknown or not installed, or the potential's arrays are not those of its
            settings.
    """
    if potential.architecture not in MODELS:
        known = ", ".join(MODELS)
        raise UserError(f"architecture {potential.architecture!r} does not run on PyTorch; expected one of: {known}")
    module, name = MODELS[potential.architecture]
    try:
        adapter = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise UserError(
            f"architecture {potential.architecture} needs {error.name}, which is not installed; "
            "pip install 'forgefield[fabric]'"
        ) from None
    return adapter(potential, dtype)
