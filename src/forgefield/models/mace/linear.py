"""e3nn's linear maps. Features are lists of (N, 2l + 1, C) arrays by degree l; weights are stored flat."""

from collections.abc import Sequence

import jax
import numpy as np

Features = list[jax.Array]


def equivariant_linear(features: Features, weight: jax.Array, channels: int) -> Features:
    """One (C, ``channels``) map for each degree."""
    width = features[0].shape[-1]
    maps = scaled(weight, width).reshape(len(features), width, channels)
    return [by_rows(part, maps[degree]) for degree, part in enumerate(features)]


def by_rows(features: jax.Array, matrix: jax.Array) -> jax.Array:
    """(..., C) features times a (C, D) matrix, as one product of matrices, whose derivatives are such products again.

    The gradient of a product of more axes would be computed from transposed copies.
    """
    return (features.reshape(-1, features.shape[-1]) @ matrix).reshape(*features.shape[:-1], -1)


def scalar_linear(features: jax.Array, weight: jax.Array) -> jax.Array:
    """Scalars (N, C) times the map stored in ``weight``."""
    channels = features.shape[-1]
    return features @ scaled(weight, channels).reshape(channels, -1)


def scaled(weight: jax.Array, inputs: int) -> jax.Array:
    """A weight divided by the root of its number of inputs."""
    return weight * np.asarray(1.0 / np.sqrt(inputs), weight.dtype)


def element_linear(features: Features, weight: jax.Array, elements: jax.Array, channels: int) -> Features:
    """e3nn's product of features with one-hot elements (N, Z): a map for each degree and element."""
    n_elements, width = elements.shape[1], features[0].shape[-1]
    maps = scaled(weight, width * n_elements).reshape(len(features), width, n_elements, channels)
    return [_element_map(part, maps[degree], elements) for degree, part in enumerate(features)]


def _element_map(features: jax.Array, maps: jax.Array, elements: jax.Array) -> jax.Array:
    """(N, M, C) features times the (C, D) map of each atom's element, from (C, Z, D) maps."""
    apart = elements[:, None, :, None] * features[:, :, None]
    return by_rows(apart.reshape(*features.shape[:2], -1), maps.transpose(1, 0, 2).reshape(-1, maps.shape[-1]))


def add(first: Features, second: Sequence[jax.Array]) -> Features:
    """Sum by degree; ``second`` may have fewer degrees."""
    return [a + second[degree] if degree < len(second) else a for degree, a in enumerate(first)]
