"""Radial functions of MACE, evaluated once for each undirected pair of atoms."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.models.mace.contraction import lax_split
from forgefield.models.mace.names import RADIAL
from forgefield.models.mace.settings import MaceSettings


def cutoff_polynomial(ratio: jax.Array, p: int) -> jax.Array:
    """Equation 8 of Gasteiger et al. (2020): falls from 1 at distance 0 to 0 at the cutoff with two zero derivatives.

    ``ratio`` is distance / cutoff, ``p`` the polynomial's exponent.
    """
    inside = (
        1.0 - (p + 1) * (p + 2) / 2 * ratio**p + p * (p + 2) * ratio ** (p + 1) - p * (p + 1) / 2 * ratio ** (p + 2)
    )
    return jnp.where(ratio < 1.0, inside, 0.0)


def radial_basis(distances: jax.Array, buffers: Mapping[str, np.ndarray], settings: MaceSettings) -> jax.Array:
    """(P, n_bessel) Bessel functions times cutoff polynomial of (P,) distances in Å."""
    dtype = distances.dtype
    frequencies = np.asarray(buffers[RADIAL + "bessel_weights"], dtype)
    prefactor = np.asarray(buffers[RADIAL + "prefactor"], dtype)
    cutoff = cutoff_polynomial(distances / settings.r_max, settings.polynomial_cutoff)
    return prefactor * jnp.sin(frequencies * distances[:, None]) * (cutoff / distances)[:, None]


def radial_weights(
    basis: jax.Array, parameters: Mapping[str, jax.Array], layer: int, settings: MaceSettings
) -> list[jax.Array]:
    """Convolution weights, (P, C) for each degree l: a perceptron without biases, so zero basis gives zero weights."""
    hidden = basis
    for i in range(len(settings.radial_mlp)):
        weight = _layer_weight(parameters, layer, i)
        hidden = jax.nn.silu(hidden @ weight) * settings.silu_factor
    last = _layer_weight(parameters, layer, len(settings.radial_mlp))
    return [hidden @ part for part in lax_split(last, settings.hidden_channels)]


def _layer_weight(parameters: Mapping[str, jax.Array], layer: int, i: int) -> jax.Array:
    weight = parameters[f"interactions.{layer}.conv_tp_weights.layer{i}.weight"]
    return weight / np.sqrt(weight.shape[0]).astype(weight.dtype)
