"""A module of a user's own code behind the interface of this package."""

import torch
from torch import Tensor

from forgefield.errors import UserError
from forgefield.models.plugin.building import to_module
from forgefield.models.potential import Potential
from forgefield.models.pytorch.derivatives import derived
from forgefield.models.pytorch.graphs import TorchGraph
from forgefield.models.pytorch.interface import Predicted


class PluginModel(torch.nn.Module):
    """A :class:`~forgefield.models.pytorch.interface.TorchModel` around what the code's ``build`` made."""

    def __init__(self, potential: Potential, dtype: torch.dtype) -> None:
        super().__init__()
        self.network = to_module(potential, dtype)
        self._object, self._names = potential.config["object"], tuple(potential.parameters)

    def forward(self, graph: TorchGraph, virial: bool) -> Predicted:
        return derived(self._energies, graph, virial=virial, create_graph=self.training)

    def potential_parameters(self) -> dict[str, torch.nn.Parameter]:
        own = dict(self.network.named_parameters())
        return {name: own[name] for name in self._names}

    def _energies(self, graph: TorchGraph) -> Tensor:
        energy = self.network(graph)
        if not isinstance(energy, Tensor) or energy.shape != graph.n_atoms.shape:
            found = f"shape {tuple(energy.shape)}" if isinstance(energy, Tensor) else f"a {type(energy).__name__}"
            raise UserError(
                f"python.object {self._object}: forward(graph) gave {found}, expected the energy of each structure, "
                f"shape {tuple(graph.n_atoms.shape)}"
            )
        return energy
