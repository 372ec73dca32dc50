"""Forces and virials as derivatives of a model's energies."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from forgefield.models.pytorch.graphs import TorchGraph
from forgefield.models.pytorch.interface import Predicted


class DerivedModel(torch.nn.Module, ABC):
    """A :class:`~forgefield.models.pytorch.interface.TorchModel` around a network that gives energies.

    Args:
        network: the module.
        names: of its parameters that training changes.
    """

    def __init__(self, network: torch.nn.Module, names: Iterable[str]) -> None:
        super().__init__()
        self.network, self._names = network, tuple(names)

    def forward(self, graph: TorchGraph, virial: bool) -> Predicted:
        return derived(self.energies, graph, virial=virial, create_graph=self.training)

    def potential_parameters(self) -> dict[str, torch.nn.Parameter]:
        own = dict(self.network.named_parameters())
        return {name: own[name] for name in self._names}

    @abstractmethod
    def energies(self, graph: TorchGraph) -> Tensor:
        """(B,) energies of a graph, by differentiable operations on its positions and shifts."""


def derived(
    energies: Callable[[TorchGraph], Tensor], graph: TorchGraph, *, virial: bool, create_graph: bool
) -> Predicted:
    """Energies of a graph with their derivatives by positions and, for virials, by strain.

    No cell is needed: a strain moves atoms and lattice translations alike, whatever the handedness of the cell.

    Args:
        energies: gives (B,) energies of a graph by differentiable operations on its positions and shifts.
        graph: the structures.
        virial: compute virials.
        create_graph: let all results be differentiated again, as training needs.
    """
    with torch.enable_grad():
        positions = graph.positions.detach().clone().requires_grad_()
        moved, inputs = graph._replace(positions=positions), [positions]
        if virial:
            strain = positions.new_zeros(len(graph.n_atoms), 3, 3).requires_grad_()
            moved, inputs = _strained(moved, strain), [positions, strain]
        energy = energies(moved)
        gradients = _gradients(energy, inputs, create_graph)
    forces, *virials = (-gradient for gradient in gradients)
    return Predicted(energy if create_graph else energy.detach(), forces, virials[0] if virials else None)


def _strained(graph: TorchGraph, strain: Tensor) -> TorchGraph:
    """The graph after the symmetric part of a strain (B, 3, 3)."""
    symmetric = (strain + strain.mT) / 2
    by_atom = symmetric[graph.atom_structure]
    positions = graph.positions + _times(graph.positions, by_atom)
    return graph._replace(positions=positions, shift=graph.shift + _times(graph.shift, by_atom[graph.sender]))


def _times(vectors: Tensor, matrices: Tensor) -> Tensor:
    return torch.einsum("ni,nij->nj", vectors, matrices)


def _gradients(energy: Tensor, inputs: list[Tensor], create_graph: bool) -> tuple[Tensor, ...]:
    """Zeros for inputs that have no part in the energy."""
    if not energy.requires_grad:
        return tuple(torch.zeros_like(x) for x in inputs)
    return torch.autograd.grad(energy.sum(), inputs, create_graph=create_graph, materialize_grads=True)


def sum_by_structure(site_energies: Tensor, graph: TorchGraph) -> Tensor:
    """(B,) sums over the atoms of each structure."""
    total = site_energies.new_zeros(len(graph.n_atoms))
    return total.index_add(0, graph.atom_structure, site_energies)
