"""Radial functions of MACE, evaluated once for each undirected pair of atoms."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.models.mace.names import RADIAL, TRANSFORM
from forgefield.models.mace.settings import MaceSettings


def cutoff_polynomial(ratio: jax.Array, p: int) -> jax.Array:
    """Equation 8 of Gasteiger et al. (2020): falls from 1 at distance 0 to 0 at the cutoff with two zero derivatives.

    ``ratio`` is distance / cutoff, ``p`` the polynomial's exponent.
    """
    inside = (
        1.0 - (p + 1) * (p + 2) / 2 * ratio**p + p * (p + 2) * ratio ** (p + 1) - p * (p + 1) / 2 * ratio ** (p + 2)
    )
    return jnp.where(ratio < 1.0, inside, 0.0)


def radial_basis(
    distances: jax.Array, pair_numbers: jax.Array, buffers: Mapping[str, np.ndarray], settings: MaceSettings
) -> tuple[jax.Array, jax.Array | None]:
    """The radial basis of each pair, and the cutoff function where it multiplies convolution weights instead.

    Args:
        distances: (P,) Å.
        pair_numbers: (2, P) atomic numbers of each pair.
        buffers: mace-torch's radial buffers by name.
        settings: of the model.

    Returns:
        (P, n_bessel) basis, and (P,) cutoff function or None.
    """
    cutoff = cutoff_polynomial(distances / settings.r_max, settings.polynomial_cutoff)
    transformed = distances
    if settings.distance_transform:
        transform = {"Agnesi": agnesi_transform, "Soft": soft_transform}[settings.distance_transform]
        transformed = transform(distances, pair_numbers, buffers)
    basis = {"bessel": _bessel, "gaussian": _gaussian, "chebyshev": _chebyshev}[settings.radial_type]
    if settings.apply_cutoff:
        return basis(transformed, buffers, cutoff, settings), None
    return basis(transformed, buffers, jnp.ones_like(cutoff), settings), cutoff


def _bessel(x: jax.Array, buffers: Mapping[str, np.ndarray], factor: jax.Array, settings: MaceSettings) -> jax.Array:
    """Equation 7 of Gasteiger et al. (2020)."""
    frequencies = np.asarray(buffers[RADIAL + "bessel_weights"], x.dtype)
    prefactor = np.asarray(buffers[RADIAL + "prefactor"], x.dtype)
    return prefactor * jnp.sin(frequencies * x[:, None]) * (factor / x)[:, None]


def _gaussian(x: jax.Array, buffers: Mapping[str, np.ndarray], factor: jax.Array, settings: MaceSettings) -> jax.Array:
    centers = np.asarray(buffers[RADIAL + "gaussian_weights"], x.dtype)
    coefficient = np.asarray(buffers[RADIAL + "coeff"], x.dtype)
    return jnp.exp(coefficient * (x[:, None] - centers) ** 2) * factor[:, None]


def _chebyshev(x: jax.Array, buffers: Mapping[str, np.ndarray], factor: jax.Array, settings: MaceSettings) -> jax.Array:
    """Polynomials T_1, T_2, ... of the first kind, of the distance as it is: mace-torch does not scale it."""
    polynomials = [jnp.ones_like(x), x]
    while len(polynomials) <= settings.n_bessel:
        polynomials.append(2 * x * polynomials[-1] - polynomials[-2])
    return jnp.stack(polynomials[1 : settings.n_bessel + 1], axis=1) * factor[:, None]


def agnesi_transform(distances: jax.Array, pair_numbers: jax.Array, buffers: Mapping[str, np.ndarray]) -> jax.Array:
    """Equation 18 of Witt et al. (2023), https://doi.org/10.1063/5.0158783; arguments as of :func:`radial_basis`."""
    q, p, a = (np.asarray(buffers[TRANSFORM + name], distances.dtype) for name in "qpa")
    ratio = distances / (0.5 * sum(covalent_radii(pair_numbers, buffers[TRANSFORM + "covalent_radii"], distances)))
    return 1 / (1 + a * ratio**q / (1 + ratio ** (q - p)))


def soft_transform(distances: jax.Array, pair_numbers: jax.Array, buffers: Mapping[str, np.ndarray]) -> jax.Array:
    """Distances that do not fall below 3/4 of the sum of covalent radii; arguments as of :func:`radial_basis`."""
    bond = sum(covalent_radii(pair_numbers, buffers[TRANSFORM + "covalent_radii"], distances))
    low, high = 3 / 4 * bond, 4 / 3 * bond
    steepness = np.asarray(buffers[TRANSFORM + "alpha"], distances.dtype) / (high - low)
    step = 0.5 * (1.0 + jnp.tanh(steepness * (distances - 0.5 * (low + high))))
    return low + (distances - low) * step


def covalent_radii(pair_numbers: jax.Array, radii: np.ndarray, like: jax.Array) -> jax.Array:
    """(2, P) Å, from ``radii`` by atomic number, in the dtype of ``like``."""
    return jnp.asarray(radii, like.dtype)[pair_numbers]
