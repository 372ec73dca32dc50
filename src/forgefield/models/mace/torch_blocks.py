"""Faster ways to compute two blocks of mace-torch's models: the same sums, from the same weights.

They take the places of mace-torch's own in a model that is trained or evaluated, never in one that is saved.
"""

from typing import Any

import torch
from torch import Tensor

from forgefield.models.pytorch.neighbor_slots import NeighborSlots


def speed_up(network: torch.nn.Module) -> None:
    """Change a mace-torch model in place, where its blocks are of a kind that is known here."""
    for product in network.products:
        for i, own in enumerate(product.symmetric_contractions.contractions):
            product.symmetric_contractions.contractions[i] = Contraction(own)
    for interaction in network.interactions:
        if _is_of_scalars(interaction.conv_tp):
            interaction.conv_tp = ScalarConvolution(interaction.conv_tp.irreps_in2.lmax)
            # lets mace-torch pass the edges on, and leave the sum over neighbors to the convolution
            interaction.conv_fusion = True


class Contraction(torch.nn.Module):
    """mace-torch's symmetric contraction of features, a polynomial for each element, from its weights.

    mace-torch multiplies every atom with the weights of all elements, and makes outer products by matrix products. Here
    the atoms of an element are taken together and meet its weights only, and the highest order begins with the products
    of two features, each once.
    """

    def __init__(self, own: torch.nn.Module) -> None:
        super().__init__()
        # under mace-torch's names
        self.weights_max, self.weights = own.weights_max, own.weights
        orders = range(own.correlation, 0, -1)
        couplings = [own.U_tensors(order) for order in orders]
        features = couplings[0].shape[-2]
        first, second = torch.triu_indices(features, features)
        self.register_buffer("_first", first)
        self.register_buffer("_second", second)
        if own.correlation > 1:
            both = couplings[0] + couplings[0].transpose(-2, -3)
            couplings[0] = both[..., first, second, :] * torch.where(first == second, 0.5, 1.0)[:, None].to(both.dtype)
        self._orders = len(couplings)
        for i, coupling in enumerate(couplings):
            # (components that are left, features that are summed over now, paths)
            summed = coupling.shape[-2] if i < 2 else 1
            self.register_buffer(f"_couplings_{i}", coupling.reshape(-1, summed, coupling.shape[-1]))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(N, C * components) of features (N, C, M) and elements (N, E) as zeros and ones."""
        species = y.argmax(dim=1)
        order = torch.argsort(species, stable=True)
        terms = [self._weighted(i, w) for i, w in enumerate([self.weights_max, *self.weights])]
        counts = torch.bincount(species, minlength=y.shape[1]).tolist()
        parts = x[order].permute(1, 2, 0).split(counts, dim=2)
        found = [self._polynomial(part, [t[e] for t in terms]) for e, part in enumerate(parts) if part.shape[2]]
        return torch.cat(found, dim=2).permute(2, 0, 1)[torch.argsort(order)].flatten(1)

    def _weighted(self, i: int, weight: Tensor) -> Tensor:
        """(E, C, components, features) of weights (E, paths, C)."""
        couplings = getattr(self, f"_couplings_{i}")
        n_elements, paths, channels = weight.shape
        summed = couplings.flatten(0, 1) @ weight.transpose(0, 1).reshape(paths, -1)
        # as it is a batch of products would be computed one by one, each from a copy
        return summed.view(*couplings.shape[:2], n_elements, channels).permute(2, 3, 0, 1).contiguous()

    def _polynomial(self, x: Tensor, terms: list[Tensor]) -> Tensor:
        """(C, components, N) of features (C, M, N) of one element, by Horner's scheme."""
        highest, *lower = terms
        if not lower:
            return torch.bmm(highest, x)
        squares = x.index_select(1, self._first) * x.index_select(1, self._second)
        value = torch.bmm(highest, squares) + torch.bmm(lower[0], x)
        for term in lower[1:]:
            value = ((value + term).unflatten(1, (-1, x.shape[1])) * x[:, None]).sum(dim=2)
        return value


def _is_of_scalars(conv_tp: Any) -> bool:
    """Whether a convolution has scalar features only, and so one path for each degree of the edges' harmonics."""
    edges = getattr(conv_tp, "irreps_in2", None)
    if edges is None or conv_tp.irreps_in1.lmax > 0 or any(ir.p < 0 for _, ir in conv_tp.irreps_in1):
        return False
    by_degree = [(1, degree) for degree in range(edges.lmax + 1)]
    return len(conv_tp.irreps_in1) == 1 and [(n, ir.l) for n, ir in edges] == by_degree


class ScalarConvolution(torch.nn.Module):
    """Sums over neighbors of scalar features times radial weights times spherical harmonics, as matrix products.

    mace-torch keeps the product of each edge, (E, C * (l_max + 1)^2) numbers, and adds them up one by one.
    """

    def __init__(self, l_max: int) -> None:
        super().__init__()
        self._sizes = [2 * degree + 1 for degree in range(l_max + 1)]

    def forward(self, features: Tensor, harmonics: Tensor, weights: Tensor, edges: Tensor) -> Tensor:
        """(N, C * (l_max + 1)^2) messages, by degree, channel and order."""
        sender, receiver = edges
        slots = NeighborSlots(receiver, len(features))
        values = weights.unflatten(1, (-1, features.shape[1])) * features.index_select(0, sender)[:, None]
        values = values.index_select(0, slots.edges)
        angular = harmonics.index_select(0, slots.edges) * slots.filled[:, None]
        parts = zip(angular.split(self._sizes, dim=1), values.split(1, dim=1), strict=True)
        return torch.cat([slots.sums(v, y[:, None]).flatten(1) for y, v in parts], dim=1)
