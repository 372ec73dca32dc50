"""FlashCart's model behind the interface of this package."""

from collections.abc import Iterator

import torch
from torch import Tensor

from forgefield.models.flashcart.exchange import to_flashcart
from forgefield.models.potential import Potential
from forgefield.models.pytorch.building import default_dtype
from forgefield.models.pytorch.derivatives import DerivedModel, sum_by_structure
from forgefield.models.pytorch.flashcart_blocks import speed_up
from forgefield.models.pytorch.graphs import TorchGraph


class FlashcartModel(DerivedModel):
    """A :class:`~forgefield.models.pytorch.interface.TorchModel` around the package's FlashCartPotential.

    It gives the package vectors of edges and takes site energies, and makes the derivatives itself: the package's own
    stress has the wrong sign where a cell is left-handed, and it needs a cell.
    """

    def __init__(self, potential: Potential, dtype: torch.dtype) -> None:
        network = to_flashcart(potential, dtype)
        with default_dtype(dtype):
            speed_up(network)
        super().__init__(network, potential.parameters)

    def non_decayable_parameters(self) -> Iterator[torch.nn.Parameter]:
        """Parameters that weight decay would only harm, such as biases."""
        return self.network.non_decayable_parameters()

    def non_muon_parameters(self) -> Iterator[torch.nn.Parameter]:
        """Matrices that are no linear maps, such as the elements' embedding."""
        return self.network.non_muon_parameters()

    def energies(self, graph: TorchGraph) -> Tensor:
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
