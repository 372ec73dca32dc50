"""FlashCart's model behind the interface of this package."""

import torch
from torch import Tensor

from forgefield.models.flashcart.exchange import to_flashcart
from forgefield.models.potential import Potential
from forgefield.models.pytorch.derivatives import derived, sum_by_structure
from forgefield.models.pytorch.graphs import TorchGraph
from forgefield.models.pytorch.interface import Predicted


class FlashcartModel(torch.nn.Module):
    """A :class:`~forgefield.models.pytorch.interface.TorchModel` around the package's FlashCartPotential.

    It gives the package vectors of edges and takes site energies, and makes the derivatives itself: the package's own
    stress has the wrong sign where a cell is left-handed, and it needs a cell.
    """

    def __init__(self, potential: Potential, dtype: torch.dtype) -> None:
        super().__init__()
        self.network = to_flashcart(potential, dtype)
        self._names = tuple(potential.parameters)

    def forward(self, graph: TorchGraph, virial: bool) -> Predicted:
        return derived(self._energies, graph, virial=virial, create_graph=self.training)

    def potential_parameters(self) -> dict[str, torch.nn.Parameter]:
        own = dict(self.network.named_parameters())
        return {name: own[name] for name in self._names}

    def _energies(self, graph: TorchGraph) -> Tensor:
        # FlashCart's vectors run from the receiver, which is row 0 of its edges, to the sender
        edges, vectors = torch.stack([graph.receiver, graph.sender]), -graph.vectors
        if not len(vectors):
            edges, vectors = _without_effect(graph, self.network.r_max)
        inputs = {"edge_index": edges, "batch": graph.atom_structure, "atom_types": graph.species, "vectors": vectors}
        return sum_by_structure(self.network(inputs), graph)


def _without_effect(graph: TorchGraph, r_max: float) -> tuple[Tensor, Tensor]:
    """An edge beyond the cutoff, from the first atom to itself: the package cannot do without any."""
    edge = torch.zeros(2, 1, dtype=torch.int64, device=graph.positions.device)
    return edge, graph.positions.new_tensor([[2 * r_max, 0.0, 0.0]])
