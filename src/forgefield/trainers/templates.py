"""Functions of one structure, as jax_md makes them, as functions of packed batches."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from forgefield.data.batching import Capacity
from forgefield.data.samples import NeighborUpdates, Samples
from forgefield.data.structures import Structure

# Å between padded atoms, and from them to any real one: beyond every cutoff where space is not periodic
FAR = 1e4


def samples_of(graph: Samples) -> dict[str, Array]:
    """What an energy function of one structure takes, with a leading axis over structures.

    Returns:
        R (B, A, 3) in Å, species (B, A), mask (B, A) and, where something is periodic, box (B, 3, 3). Padded atoms are
        far away; an empty place holds the first structure, whose energy is finite.
    """
    n = jnp.where(graph.n_atoms > 0, graph.n_atoms, graph.n_atoms[0])
    starts = jnp.where(graph.n_atoms > 0, jnp.cumsum(graph.n_atoms) - graph.n_atoms, 0)
    mask = graph.slots < n[:, None]
    atom = jnp.where(mask, starts[:, None] + graph.slots, 0)
    far = FAR * (1.0 + graph.slots[:, None]) * jnp.ones(3)
    samples = {
        "R": jnp.where(mask[:, :, None], graph.positions[atom], far.astype(graph.positions.dtype)),
        "species": jnp.where(mask, graph.species[atom], 0),
        "mask": mask,
    }
    return samples if graph.box is None else samples | {"box": graph.box}


def neighbor_updates(nbrs_init: Any) -> NeighborUpdates:
    """How structures are packed for a neighbor list with ``update(R, **sample)`` and ``did_buffer_overflow``."""

    @jax.jit
    def overflow(graph: Samples) -> Array:
        sample = jax.tree.map(lambda x: x[0], samples_of(graph))
        return nbrs_init.update(sample.pop("R"), **sample).did_buffer_overflow

    def overflows(structure: Structure) -> bool:
        capacity = Capacity(1, made.most_atoms, 1, 1)
        return bool(overflow(made.pack([structure], [], capacity, np.dtype(float)).graph))

    made = NeighborUpdates(len(nbrs_init.reference_position), overflows)
    return made


def batched_template(template: Callable[[Any], Callable[..., Array]], nbrs_init: Any) -> Callable:
    """``template(params)(R, neighbor, **sample)``, a quantity of one structure, as a template for packed batches."""

    def of_params(params: Any) -> Callable[..., Array]:
        function = template(params)

        def quantity(R: Array, **sample: Array) -> Array:
            # the list is a choice of pairs, through which nothing is differentiated
            neighbor = nbrs_init.update(jax.lax.stop_gradient(R), **sample)
            return function(R, neighbor, **sample)

        def quantities(graph: Samples, strain: None = None) -> Array:
            found = jax.vmap(lambda sample: quantity(**sample))(samples_of(graph))
            there = (graph.n_atoms > 0).reshape(-1, *[1] * (found.ndim - 1))
            return jnp.where(there, found, 0.0)

        return quantities

    return of_params
