"""Messages: sums over neighbors of weight x coupling of the neighbor's features with the direction's harmonics."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.models.mace import cuequivariance
from forgefield.models.mace.couplings import coupling
from forgefield.models.mace.linear import Features, by_rows, scaled
from forgefield.models.mace.settings import Layer, Path
from forgefield.models.mace.surroundings import Surroundings, take

# the sums of one path of the convolution; None where nothing of its degree is sent
Sums = list[jax.Array | None]


def convolution(sources: Features, weights: Sequence[jax.Array], layer: Layer, around: Surroundings) -> Sums:
    """(N, 2l + 1, C) sums over neighbors for each path of ``layer``.

    ``sources`` are what atoms send; ``weights`` are (R, K, C) for each path. Batched matrix products with the slots as
    the inner axis: nothing is scattered.
    """
    if layer.kernels == "cuequivariance":
        return cuequivariance.convolution(sources, weights, layer, around)
    neighbors = [take(part, around.atom) for part in sources]
    sums: Sums = []
    for path, weight in zip(layer.paths, weights, strict=True):
        if path.source >= len(sources):
            sums.append(None)
        elif path.source == 0:
            sent = weight * neighbors[0][:, :, 0]
            sums.append(_sum(around.harmonics[path.harmonic], sent))
        else:
            sums.append(_coupled_sum(neighbors[path.source], weight, around.harmonics[path.harmonic], path))
    return sums


def _coupled_sum(neighbors: jax.Array, weight: jax.Array, harmonics: jax.Array, path: Path) -> jax.Array:
    """The product's inner axis runs over slots and the components of what they send."""
    symbols = np.sqrt(2 * path.message + 1) * coupling(*path)
    coupled = jnp.einsum("rgbk,abm->rgmka", harmonics, symbols.astype(harmonics.dtype))
    sent = weight[:, :, None] * neighbors
    return _sum(coupled.reshape(*coupled.shape[:3], -1), sent.reshape(len(sent), -1, sent.shape[-1]))


def _sum(factors: jax.Array, sent: jax.Array) -> jax.Array:
    """(N, 2l + 1, C) sums of what is sent (R, K, C) by ``factors`` (R, 2, 2l + 1, K), one product for a row's atoms."""
    rows, atoms, components, slots = factors.shape
    total = jnp.einsum("rjk,rkc->rjc", factors.reshape(rows, atoms * components, slots), sent)
    return total.reshape(rows * atoms, components, -1)


def mix_paths(sums: Sums, weight: jax.Array, layer: Layer, channels: Mapping[int, int]) -> Features:
    """All paths to one degree mixed to ``channels[degree]`` channels, by e3nn's linear map."""
    width = layer.source_channels
    sizes = [width * channels[path.message] for path in layer.paths]
    fan_in = Counter(path.message for path in layer.paths)
    mixed: dict[int, list[jax.Array]] = {degree: [] for degree in channels}
    for path, part, block in zip(layer.paths, sums, jax.lax.split(weight, sizes), strict=True):
        if part is not None:
            matrix = scaled(block, width * fan_in[path.message]).reshape(width, -1)
            mixed[path.message].append(by_rows(part, matrix))
    return [reduce(add, parts) for _, parts in sorted(mixed.items())]
