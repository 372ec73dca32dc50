"""What every layer reads about an atom's neighbors, in dense (row, slot) arrays, so that sums need no scatter."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.data.batching import Graph
from forgefield.data.slots import ATOMS_PER_ROW
from forgefield.models.mace.couplings import coupling
from forgefield.models.mace.radial import radial_basis
from forgefield.models.mace.repulsion import pair_repulsion
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.mace.spherical import spherical_harmonics


class Surroundings(NamedTuple):
    """Everything that depends on positions but not on parameters.

    N atoms in the order of R rows of two, K neighbor slots of a row, P pairs, Z elements.

    Attributes:
        harmonics: for each degree l, (R, 2, 2l + 1, K) spherical harmonics of the neighbor slots; zero for padding and
            for the slots of the row's other atom.
        basis: (P, n_bessel) radial basis.
        cutoff: (P,) what multiplies convolution weights, or None.
        repulsion: (N,) share in the pair repulsion, eV, or None.
        atom, pair: (R, K) neighbor and pair of each slot.
        real: (R, 2, K) 1 for an atom's neighbors, 0 elsewhere.
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

    @property
    def receiver(self) -> jax.Array:
        """(R, K) the atom whose neighbor is in each slot."""
        rows = jnp.arange(len(self.atom), dtype=self.atom.dtype)[:, None]
        return ATOMS_PER_ROW * rows + self.real[:, 1].astype(self.atom.dtype)

    def total(self, values: jax.Array) -> jax.Array:
        """(N,) sums of numbers (R, K) of slots over each atom's neighbors."""
        return jnp.einsum("rgk,rk->rg", self.real, values).reshape(-1)


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
    slots = graph.neighbors
    numbers = jnp.asarray(elements, jnp.int32)[graph.species]
    pair_numbers = jnp.stack([take(numbers, graph.pair_receiver), take(numbers, graph.pair_sender)])
    basis, cutoff = radial_basis(distances, pair_numbers, buffers, settings)
    sign = jnp.asarray(slots.sign, dtype)
    around = Surroundings(
        _harmonics(vectors / distances[:, None], sign, slots.pair, settings.l_max),
        basis,
        cutoff,
        None,
        slots.atom,
        slots.pair,
        jnp.abs(sign),
        jax.nn.one_hot(take(graph.species, slots.atom_order), len(elements), dtype=dtype),
    )
    if settings.pair_repulsion:
        shares = pair_repulsion(distances, pair_numbers, buffers)
        around = around._replace(repulsion=around.total(take(shares, slots.pair)))
    return around


def _harmonics(directions: jax.Array, sign: jax.Array, pair: jax.Array, l_max: int) -> list[jax.Array]:
    harmonics = []
    for degree, of_pairs in enumerate(pair_harmonics(directions, l_max)):
        slots = take(of_pairs, pair).transpose(0, 2, 1)
        # odd harmonics change sign with the direction of the pair
        factor = sign if degree % 2 else jnp.abs(sign)
        # without a barrier the transpose is merged into the matrix products, which then take a slow path
        of_atoms = jnp.stack([slots * factor[:, i, None] for i in range(ATOMS_PER_ROW)], axis=1)
        harmonics.append(jax.lax.optimization_barrier(of_atoms))
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
