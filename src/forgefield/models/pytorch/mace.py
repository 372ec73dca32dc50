"""mace-torch's model behind this engine's interface."""

import torch

from forgefield.models.mace.torch_autocast import without_autocast
from forgefield.models.mace.torch_blocks import speed_up
from forgefield.models.mace.torch_exchange import to_torch
from forgefield.models.mace.torch_reference import exact_forces
from forgefield.models.potential import Potential
from forgefield.models.pytorch.building import default_dtype
from forgefield.models.pytorch.graphs import TorchGraph
from forgefield.models.pytorch.interface import Predicted


class MaceModel(torch.nn.Module):
    """A :class:`~forgefield.models.pytorch.interface.TorchModel` around mace-torch's ScaleShiftMACE.

    Forces and virials are derivatives of the energy also with Chebyshev functions, where mace-torch's own are not.
    """

    def __init__(self, potential: Potential, dtype: torch.dtype) -> None:
        super().__init__()
        self.network = exact_forces(to_torch(potential, dtype))
        speed_up(self.network)
        for block in (*(p.symmetric_contractions for p in self.network.products), *self.network.readouts):
            # with autocast the first ones would fail, and energies be added up in bfloat16
            without_autocast(block)
        self._names = tuple(potential.parameters)

    def forward(self, graph: TorchGraph, virial: bool) -> Predicted:
        output = self._output(graph, training=self.training, compute_virials=virial)
        return Predicted(output["interaction_energy"], output["forces"], output["virials"])

    def energies(self, graph: TorchGraph) -> torch.Tensor:
        return self._output(graph, compute_force=False)["interaction_energy"]

    def _output(self, graph: TorchGraph, **wanted: bool) -> dict[str, torch.Tensor | None]:
        inputs = _inputs(graph, len(self.network.atomic_numbers))
        # mace-torch makes constants of its pair repulsion in the default dtype
        with default_dtype(graph.positions.dtype):
            return self.network(inputs, **wanted)

    def potential_parameters(self) -> dict[str, torch.nn.Parameter]:
        own = dict(self.network.named_parameters())
        return {name: own[name] for name in self._names}


def _inputs(graph: TorchGraph, n_elements: int) -> dict[str, torch.Tensor]:
    """mace-torch's input dictionary, which it changes."""
    structures = len(graph.n_atoms)
    return {
        # a new leaf: mace-torch asks for its gradient, and the batch stays as it is
        "positions": graph.positions.detach().clone(),
        "node_attrs": torch.nn.functional.one_hot(graph.species, n_elements).to(graph.positions.dtype),
        "edge_index": torch.stack([graph.sender, graph.receiver]),
        "shifts": graph.shift,
        # under strain mace-torch takes shifts as unit_shifts @ cell: with a cell of 1 Å they may be Cartesian
        "unit_shifts": graph.shift,
        "cell": torch.eye(3, dtype=graph.positions.dtype, device=graph.positions.device).repeat(structures, 1),
        "batch": graph.atom_structure,
        "ptr": torch.nn.functional.pad(graph.n_atoms.cumsum(0), (1, 0)),
        "head": torch.zeros_like(graph.n_atoms),
    }
