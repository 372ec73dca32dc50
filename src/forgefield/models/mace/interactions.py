"""One MACE layer: messages summed over neighbors, then a product of the sums.

Sums over neighbors are batched matrix products over dense (atom, slot) arrays, so nothing is scattered.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.data.batching import Graph
from forgefield.models.mace.contraction import lax_split, symmetric_contraction
from forgefield.models.mace.radial import radial_basis, radial_weights
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.mace.spherical import spherical_harmonics


class Surroundings(NamedTuple):
    """What every layer reads about an atom's neighbors.

    Attributes:
        harmonics: for each degree l, (N, 2l + 1, K) spherical harmonics of the neighbor slots; zero for padding.
        basis: (P, n_bessel) radial basis.
        atom, pair: (N, K) neighbor and pair of each slot.
        elements: (N, Z) one-hot elements.
    """

    harmonics: list[jax.Array]
    basis: jax.Array
    atom: jax.Array
    pair: jax.Array
    elements: jax.Array


def surroundings(
    vectors: jax.Array, graph: Graph, n_elements: int, buffers: Mapping[str, np.ndarray], settings: MaceSettings
) -> Surroundings:
    """Everything that depends on the pair vectors (P, 3) but not on parameters."""
    dtype = vectors.dtype
    distances = jnp.sqrt(jnp.sum(vectors**2, axis=1))
    x, y, z = (vectors / distances[:, None]).T
    sign = jnp.asarray(graph.neighbor_sign, dtype)
    harmonics = []
    for degree, components in enumerate(spherical_harmonics(settings.l_max, x, y, z)):
        slots = take(jnp.stack(components, axis=1), graph.neighbor_pair)
        # odd harmonics change sign with the direction of the pair
        slots = slots * (sign if degree % 2 else jnp.abs(sign))[..., None]
        # without a barrier the transpose is merged into the matrix products, which then take a slow path
        harmonics.append(jax.lax.optimization_barrier(slots.transpose(0, 2, 1)))
    return Surroundings(
        harmonics,
        radial_basis(distances, buffers, settings),
        graph.neighbor_atom,
        graph.neighbor_pair,
        jax.nn.one_hot(graph.species, n_elements, dtype=dtype),
    )


def take(array: jax.Array, index: jax.Array) -> jax.Array:
    """Rows of ``array``; packed graphs hold no index out of bounds."""
    return jnp.asarray(array).at[index].get(mode="promise_in_bounds")


def interaction_layer(
    features: jax.Array,
    around: Surroundings,
    parameters: Mapping[str, jax.Array],
    buffers: Mapping[str, np.ndarray],
    layer: int,
    settings: MaceSettings,
) -> jax.Array:
    """New features (N, C) from ``features`` (N, C), or (Z, C) by element in the first layer."""
    prefix = f"interactions.{layer}."
    by_element = layer == 0
    residual = settings.interactions[layer] == "RealAgnosticResidualInteractionBlock"
    skip = parameters[prefix + "skip_tp.weight"]
    sources = linear(features, parameters[prefix + "linear_up.weight"])
    if by_element:
        sources = around.elements @ sources
    sums = convolution(sources, radial_weights(around.basis, parameters, layer, settings), around)
    sums = mix_channels(sums, parameters[prefix + "linear.weight"], settings)
    if not residual:
        sums = skip_by_element(sums, skip, around.elements)
    components = [c for part in sums for c in lax_split(part.reshape(len(part), -1), settings.hidden_channels)]
    product = symmetric_contraction(
        parameters, buffers, layer, settings.correlation[layer], components, around.elements
    )
    update = linear(product, parameters[f"products.{layer}.linear.weight"])
    return update + _residual(features, skip, around.elements, by_element) if residual else update


def convolution(sources: jax.Array, weights: list[jax.Array], around: Surroundings) -> list[jax.Array]:
    """Sums over neighbors of weight x source x harmonic: (N, 2l + 1, C) for each degree l."""
    neighbors = take(sources, around.atom)
    return [
        jnp.einsum("nmk,nkc->nmc", harmonics, take(weight, around.pair) * neighbors)
        for harmonics, weight in zip(around.harmonics, weights, strict=True)
    ]


def linear(features: jax.Array, weight: jax.Array) -> jax.Array:
    """e3nn's linear map of scalars, its weight stored flat."""
    channels = features.shape[-1]
    return features @ (weight.reshape(channels, -1) / np.sqrt(channels).astype(weight.dtype))


def mix_channels(sums: list[jax.Array], weight: jax.Array, settings: MaceSettings) -> list[jax.Array]:
    """One (C, C) map for each degree, divided by the average number of neighbors."""
    channels = settings.hidden_channels
    factor = np.asarray(1.0 / (np.sqrt(channels) * settings.avg_num_neighbors), weight.dtype)
    maps = weight.reshape(settings.l_max + 1, channels, channels) * factor
    return [(part.reshape(-1, channels) @ maps[degree]).reshape(part.shape) for degree, part in enumerate(sums)]


def skip_by_element(sums: list[jax.Array], weight: jax.Array, elements: jax.Array) -> list[jax.Array]:
    """One (C, C) map for each degree and element."""
    n_elements, channels = elements.shape[1], sums[0].shape[-1]
    maps = weight.reshape(len(sums), channels, n_elements, channels)
    return [element_linear(part, maps[degree], elements) for degree, part in enumerate(sums)]


def _residual(features: jax.Array, weight: jax.Array, elements: jax.Array, by_element: bool) -> jax.Array:
    n_elements, channels = elements.shape[1], features.shape[-1]
    maps = weight.reshape(channels, n_elements, -1)
    if by_element:
        identity = jnp.eye(n_elements, dtype=features.dtype)
        return elements @ element_linear(features[:, None], maps, identity)[:, 0]
    return element_linear(features[:, None], maps, elements)[:, 0]


def element_linear(features: jax.Array, weight: jax.Array, elements: jax.Array) -> jax.Array:
    """e3nn's product of features (N, M, C) with one-hot elements (N, Z); weight (C, Z, D), result (N, M, D)."""
    channels, n_elements, width = weight.shape
    by_element = weight.transpose(1, 0, 2).reshape(n_elements, -1)
    by_element = by_element * np.asarray(1.0 / np.sqrt(channels * n_elements), weight.dtype)
    return jnp.einsum("nmc,ncd->nmd", features, (elements @ by_element).reshape(-1, channels, width))
