"""A module of a user's own code behind the interface of this package."""

import torch
from torch import Tensor

from forgefield.errors import UserError
from forgefield.models.plugin.building import to_module
from forgefield.models.potential import Potential
from forgefield.models.pytorch.derivatives import DerivedModel
from forgefield.models.pytorch.graphs import TorchGraph


class PluginModel(DerivedModel):
    """A :class:`~forgefield.models.pytorch.interface.TorchModel` around what the code's ``build`` made."""

    def __init__(self, potential: Potential, dtype: torch.dtype) -> None:
        super().__init__(to_module(potential, dtype), potential.parameters)
        self._object = potential.config["object"]

    def energies(self, graph: TorchGraph) -> Tensor:
        energy = self.network(graph)
        if not isinstance(energy, Tensor) or energy.shape != graph.n_atoms.shape:
            found = f"shape {tuple(energy.shape)}" if isinstance(energy, Tensor) else f"a {type(energy).__name__}"
            raise UserError(
                f"python.object {self._object}: forward(graph) gave {found}, expected the energy of each structure, "
                f"shape {tuple(graph.n_atoms.shape)}"
            )
        return energy

    def changing_buffers(self) -> dict[str, Tensor]:
        """What the code may change as it is trained, such as the means of BatchNorm; nobody knows which it does."""
        return dict(self.network.named_buffers())
