"""Faster ways to compute FlashCart's tensor products: the same sums, from the same weights, as matrix products.

FlashCart writes them as thousands of products of single components, which is slow but in its Triton kernels for GPUs.
These modules take the places of its own in a model that is trained or evaluated, never in one that is saved.
"""

from itertools import product

import torch
from flashcart.o3 import LinearLayer
from torch import Tensor

from forgefield.models.pytorch.neighbor_slots import NeighborSlots


def speed_up(network: torch.nn.Module) -> None:
    """Change a FlashCart model in place."""
    for interaction in network.interactions:
        # to compute radial weights again takes FlashCart's own
        if not interaction.recompute_radial:
            interaction.tp = Convolution(interaction.tp)
    for layer in network.products:
        for i, own in enumerate(layer.tensor_products):
            # the first weights are of the linear term
            layer.tensor_products[i] = Product(own, weighted=layer.path_weights[i + 1].learnable)
    for parent in list(network.modules()):
        for name, own in list(parent.named_children()):
            if isinstance(own, LinearLayer):
                parent.register_module(name, Linear(own))


class TensorProduct(torch.nn.Module):
    """FlashCart's tensor product ``own``, which a GPU with Triton computes itself.

    A path couples a degree of each input to a degree of the output. Paths are ordered as the output's degrees.
    """

    def __init__(self, own: torch.nn.Module) -> None:
        super().__init__()
        self._own, self._channels, self._out_paths = own, own.in1_features, own.out_paths
        self._degrees = []
        for i, path in enumerate(_paths(own)):
            # the components that have a part in it
            used = [path.abs().sum(dim=others).nonzero().flatten().tolist() for others in ((1, 2), (0, 2))]
            self._degrees.append(tuple(len(components) // 2 for components in used))
            first, second = (slice(components[0], components[-1] + 1) for components in used)
            self.register_buffer(f"_coupling_{i}", path[first, second], persistent=False)

    def _by_component(self, features: Tensor) -> Tensor:
        """(N, M, C)."""
        return features.unflatten(1, (-1, self._channels))

    def _couplings(self) -> list[Tensor]:
        """(2l + 1 of the first input, of the second, of the output) of each path."""
        return [getattr(self, f"_coupling_{i}") for i in range(len(self._degrees))]


class Convolution(TensorProduct):
    """Sums over neighbors of the products of their features and the edges' tensors, which have one channel."""

    def forward(self, features: Tensor, tensors: Tensor, weights: Tensor, receiver: Tensor, sender: Tensor) -> Tensor:
        """(N, sum of (2l + 1) * paths to l * C) of (N, M1 * C), (E, M2) and weights (E, paths * C)."""
        if self._own.use_triton and features.is_cuda:
            return self._own(features, tensors, weights, receiver, sender)
        slots = NeighborSlots(receiver, len(features))
        sent = self._by_component(features).index_select(0, sender[slots.edges])
        angular = tensors.index_select(0, slots.edges) * slots.filled[:, None]
        radial = self._by_component(weights).index_select(0, slots.edges)
        sent_by_degree = sent.split(_sizes(self._own.in1_l_max), dim=1)
        angular_by_degree = angular.split(_sizes(self._own.in2_l_max), dim=1)
        found = []
        for (first, second), coupling, weight in zip(self._degrees, self._couplings(), radial.unbind(1), strict=True):
            # (S, components of the neighbor's features, of the output)
            rotated = torch.einsum("sb,abc->sac", angular_by_degree[second], coupling)
            found.append(slots.sums(rotated, sent_by_degree[first] * weight[:, None]))
        by_degree = _split(found, self._out_paths)
        return torch.cat([torch.stack(paths, dim=2).flatten(1) for paths in by_degree if paths], dim=1)


class Product(TensorProduct):
    """Products of two features of each atom; weights that are not ``weighted`` are ones."""

    def __init__(self, own: torch.nn.Module, weighted: bool) -> None:
        super().__init__(own)
        self._weighted = weighted

    def forward(self, first: Tensor, second: Tensor, weights: Tensor) -> Tensor:
        """(N, sum of (2l + 1) * paths to l * C) of (N, M1 * C), (N, M2 * C) and weights (paths * C,) or (N, paths * C).

        Paths are added up where FlashCart's own does so.
        """
        if self._own.use_triton and first.is_cuda:
            return self._own(first, second, weights)
        # atoms and channels last, so that all of them are in one matrix
        x, y = (self._by_component(value).transpose(0, 1).flatten(1) for value in (first, second))
        parts = x.split(_sizes(self._own.in1_l_max)), y.split(_sizes(self._own.in2_l_max))
        degrees = product(*(range(len(part)) for part in parts))
        both = {(a, b): (parts[0][a][:, None] * parts[1][b]).flatten(0, 1) for a, b in degrees}
        found = [
            coupling.flatten(0, 1).T @ both[pair]
            for pair, coupling in zip(self._degrees, self._couplings(), strict=True)
        ]
        by_path = weights.unflatten(-1, (-1, self._channels)).unsqueeze(-3).split(self._out_paths, dim=-2)
        outputs = []
        for paths, weight in zip(_split(found, self._out_paths), by_path, strict=True):
            if paths:
                stacked = torch.stack(paths).unflatten(2, (len(first), -1)).permute(2, 1, 0, 3)
                stacked = stacked * weight if self._weighted else stacked
                outputs.append((stacked.sum(dim=2) if self._own.reduce_paths else stacked).flatten(1))
        return torch.cat(outputs, dim=1)


class Linear(torch.nn.Module):
    """Linear maps of the features of each degree."""

    def __init__(self, own: torch.nn.Module) -> None:
        super().__init__()
        # first, so that parameters keep their names
        self.weight = own.weight
        self._own = own
        self._sizes = [(2 * degree + 1) * paths * own.in_features for degree, paths in enumerate(own.in_paths)]
        self._higher = own.out_dim - (own.common_l_max + 1) ** 2 * own.out_features

    def forward(self, features: Tensor) -> Tensor:
        """(N, (out_l_max + 1)^2 * C) of features (N, in_dim)."""
        if self._own.use_triton and features.is_cuda:
            return self._own(features)
        # a slice would make a gradient of the size of all features, filled up with zeros
        blocks = zip(features.split(self._sizes, dim=1), self.weight, self._own.scale, strict=False)
        found = [
            torch.nn.functional.linear(block.unflatten(1, (2 * degree + 1, -1)), weight * scale).flatten(1)
            for degree, (block, weight, scale) in enumerate(blocks)
        ]
        return torch.cat([*found, features.new_zeros(len(features), self._higher)], dim=1)


def _paths(own: torch.nn.Module) -> list[Tensor]:
    """(M1, M2, 2l + 1) couplings of each path, in the order of their weights: what it makes of single components."""
    single = type(own)(own.in1_l_max, own.in2_l_max, own.out_l_max, 1, 1)
    ones, twos = (torch.eye((degree + 1) ** 2, dtype=torch.float64) for degree in (own.in1_l_max, own.in2_l_max))
    rows = ones.repeat_interleave(len(twos), 0), twos.repeat(len(ones), 1)
    made = single(*rows, ones.new_ones(len(rows[0]), own.n_total_paths)).to(torch.get_default_dtype())
    sizes = [(2 * degree + 1) * count for degree, count in enumerate(own.out_paths)]
    blocks = made.view(len(ones), len(twos), -1).split(sizes, dim=2)
    by_degree = (block.unflatten(2, (-1, count)).unbind(3) for block, count in zip(blocks, own.out_paths, strict=True))
    return [path for paths in by_degree for path in paths]


def _sizes(l_max: int) -> list[int]:
    return [2 * degree + 1 for degree in range(l_max + 1)]


def _split(paths: list[Tensor], counts: list[int]) -> list[list[Tensor]]:
    """Paths by the degree of the output."""
    rest = iter(paths)
    return [[next(rest) for _ in range(count)] for count in counts]
