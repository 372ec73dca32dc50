"""What every layer reads about an atom's neighbors, in dense (atom, slot) arrays, so that sums need no scatter."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.data.batching import Graph
from forgefield.models.mace.couplings import coupling
from forgefield.models.mace.radial import radial_basis
from forgefield.models.mace.repulsion import pair_repulsion
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.mace.spherical import spherical_harmonics


class Surroundings(NamedTuple):
    """Everything that depends on positions but not on parameters. N atoms, K neighbor slots, P pairs, Z elements.

    Attributes:
        harmonics: for each degree l, (N, 2l + 1, K) spherical harmonics of the neighbor slots; zero for padding.
        basis: (P, n_bessel) radial basis.
        cutoff: (P,) what multiplies convolution weights, or None.
        repulsion: (N,) share in the pair repulsion, eV, or None.
        atom, pair: (N, K) neighbor and pair of each slot.
        real: (N, K) 1 for neighbors, 0 for padding.
        elements: (N, Z) one-hot elements.
    """

    harmonics: list[jax.Array]
    basis: jax.Array
    cutoff: jax.Array | None
    repulsion: jax.Array | None
    atom: jax.Array
    pair: jax.Array
    real: jax.Array
    elements: jax.Array


def surroundings(
    vectors: jax.Array,
    graph: Graph,
    elements: Sequence[int],
    buffers: Mapping[str, np.ndarray],
    settings: MaceSettings,
) -> Surroundings:
    """``vectors`` are those of the pairs, (P, 3) Å; ``elements`` atomic numbers in the model's order."""
    dtype = vectors.dtype
    distances = jnp.sqrt(jnp.sum(vectors**2, axis=1))
    sign = jnp.asarray(graph.neighbor_sign, dtype)
    real = jnp.abs(sign)
    numbers = jnp.asarray(elements, jnp.int32)[graph.species]
    pair_numbers = jnp.stack([take(numbers, graph.pair_receiver), take(numbers, graph.pair_sender)])
    basis, cutoff = radial_basis(distances, pair_numbers, buffers, settings)
    repulsion = None
    if settings.pair_repulsion:
        shares = pair_repulsion(distances, pair_numbers, buffers)
        repulsion = jnp.sum(take(shares, graph.neighbor_pair) * real, axis=1)
    return Surroundings(
        _harmonics(vectors / distances[:, None], sign, graph, settings.l_max),
        basis,
        cutoff,
        repulsion,
        graph.neighbor_atom,
        graph.neighbor_pair,
        real,
        jax.nn.one_hot(graph.species, len(elements), dtype=dtype),
    )


def _harmonics(directions: jax.Array, sign: jax.Array, graph: Graph, l_max: int) -> list[jax.Array]:
    harmonics = []
    for degree, of_pairs in enumerate(pair_harmonics(directions, l_max)):
        slots = take(of_pairs, graph.neighbor_pair)
        # odd harmonics change sign with the direction of the pair
        slots = slots * (sign if degree % 2 else jnp.abs(sign))[..., None]
        # without a barrier the transpose is merged into the matrix products, which then take a slow path
        harmonics.append(jax.lax.optimization_barrier(slots.transpose(0, 2, 1)))
    return harmonics


def pair_harmonics(directions: jax.Array, l_max: int) -> list[jax.Array]:
    """Spherical harmonics of unit vectors (P, 3), (P, 2l + 1) by degree, each from the one below.

    A product of the vector with harmonics and a small matrix take a tenth of the operations that formulas for each
    component take, which is felt when their second derivatives are compiled.
    """
    harmonics = [jnp.ones_like(directions[:, :1]), np.sqrt(3).astype(directions.dtype) * directions]
    while len(harmonics) <= l_max:
        outer = directions[:, :, None] * harmonics[-1][:, None]
        step = raising_matrix(len(harmonics)).astype(directions.dtype)
        harmonics.append(outer.reshape(len(directions), -1) @ step)
    return harmonics[: l_max + 1]


@cache
def raising_matrix(degree: int) -> np.ndarray:
    """(3 (2l - 1), 2l + 1) what makes harmonics of degree l of products of unit vector and harmonics one below."""
    matrix = coupling(1, degree - 1, degree).reshape(-1, 2 * degree + 1)
    *_, below, expected = (np.array(part) for part in spherical_harmonics(degree, 0.0, 1.0, 0.0))
    found = np.outer([0.0, 1.0, 0.0], below).ravel() @ matrix
    return matrix * (expected @ expected) / (found @ expected)


def take(array: jax.Array, index: jax.Array) -> jax.Array:
    """Rows of ``array``; packed graphs hold no index out of bounds."""
    return jnp.asarray(array).at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)
