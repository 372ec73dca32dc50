"""A Morse potential as a hand-made energy function: the smallest thing that ForceMatching can train; and dipoles."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from forgefield.data.batching import centered_positions
from forgefield.data.structures import Structure
from forgefield.trainers import PackedNeighbors

CUTOFF = 5.0
NEIGHBORS = PackedNeighbors(CUTOFF, (1, 8), {1: -13.6, 8: -430.0})
# one value for each kind of pair: H-H, H-O, O-O
TRUE = {"depth": [0.4, 0.7, 0.3], "width": [1.4, 1.6, 1.1], "length": [1.3, 1.2, 1.7]}
START = {"depth": [0.5, 0.5, 0.5], "width": [1.3, 1.3, 1.3], "length": [1.4, 1.4, 1.4]}


def arrays(values, dtype=np.float64):
    return {name: np.array(v, dtype) for name, v in values.items()}


def morse_template(params):
    """``template(params)(graph, strain)`` gives (B,) energies in eV, smooth at the cutoff."""

    def energy_fn(graph, strain=None):
        vectors = graph.positions[graph.pair_receiver] - graph.positions[graph.pair_sender] + graph.pair_shift
        if strain is not None:
            symmetric = (strain + strain.swapaxes(1, 2)) / 2
            vectors += jnp.einsum("pi,pij->pj", vectors, symmetric[graph.pair_structure])
        r = jnp.sqrt((vectors**2).sum(axis=1))
        kind = graph.species[graph.pair_receiver] + graph.species[graph.pair_sender]
        decay = jnp.exp(-params["width"][kind] * (r - params["length"][kind]))
        envelope = jnp.where(r < CUTOFF, (1 - (r / CUTOFF) ** 2) ** 3, 0.0)
        energies = params["depth"][kind] * (decay**2 - 2 * decay) * envelope
        return jnp.zeros(len(graph.n_atoms), r.dtype).at[graph.pair_structure].add(energies)

    return energy_fn


# of H and O, e
CHARGES = np.array([0.4, -0.7])


def dipole_template(params):
    """``template(params)(graph)`` gives (B, 3) dipoles of point charges, from the mean of the positions, e Å."""

    def dipoles(graph):
        moments = params["charge"][graph.species][:, None] * graph.positions * graph.atom_mask[:, None]
        return jnp.zeros((len(graph.n_atoms), 3), moments.dtype).at[graph.atom_structure].add(moments)

    return dipoles


def with_dipoles(structures):
    """Every fifth dipole is unknown, and the others have weights; ``trust`` is 0 for every fourth structure."""
    return [replace(s, extra=_extra(i, s)) for i, s in enumerate(structures)]


def _extra(i, structure):
    dipole = CHARGES[(structure.numbers == 8).astype(int)] @ centered_positions(structure)
    known = i % 5 != 0
    return {
        "dipole": dipole if known else np.full(3, np.nan),
        "dipole_weight": 0.5 + i % 3 if known else 0.0,
        "trust": 1.0 + i % 2 if i % 4 else 0.0,
    }


def random_structures(n, seed=0, largest=9):
    """Unlabelled clusters of 3 to ``largest`` atoms, none too close; every other one in a periodic cell."""
    rng = np.random.default_rng(seed)
    structures = []
    for i in range(n):
        size = int(rng.integers(3, largest + 1))
        grid = np.stack(np.meshgrid(*[np.arange(3)] * 3), axis=-1).reshape(-1, 3)
        positions = 1.5 * rng.permutation(grid)[:size] + rng.uniform(-0.3, 0.3, (size, 3))
        cell, pbc = (np.diag([5.5, 6.0, 6.5]), np.ones(3, bool)) if i % 2 else (np.zeros((3, 3)), np.zeros(3, bool))
        structures.append(Structure(rng.choice([1, 8], size), positions, cell, pbc, source_index=i))
    return structures
