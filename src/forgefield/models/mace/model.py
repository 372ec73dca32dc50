"""The energy of packed structures by MACE."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.data.batching import Graph
from forgefield.models.mace.interactions import interaction_layer, linear, surroundings, take
from forgefield.models.mace.settings import MaceSettings


def energy_function(config: Mapping[str, Any], buffers: Mapping[str, np.ndarray]) -> Callable[..., jax.Array]:
    """The model as a function ``energies(parameters, graph, strain=None)``, to be traced by JAX.

    Args:
        config: content of :class:`MaceSettings`.
        buffers: mace-torch's radial and U buffers by name.

    Returns:
        A function that gives (B,) energies in eV without energy shifts, in the dtype of the parameters. With a
        ``strain`` (B, 3, 3) the vectors of all pairs, hence atoms and cell, are strained by its symmetric part.
    """
    settings = MaceSettings.model_validate(config)

    def energies(parameters: Mapping[str, jax.Array], graph: Graph, strain: jax.Array | None = None) -> jax.Array:
        # GPUs would otherwise round float32 products to fewer bits
        with jax.default_matmul_precision("float32"):
            atoms = _atom_energies(parameters, graph, strain, buffers, settings)
        atoms = atoms * jnp.asarray(graph.atom_mask, atoms.dtype)
        return jax.ops.segment_sum(atoms, graph.atom_structure, num_segments=graph.n_atoms.shape[0])

    return energies


def _atom_energies(parameters, graph, strain, buffers, settings: MaceSettings) -> jax.Array:
    """(N,) energies in eV; those of padded atoms mean nothing."""
    channels = settings.hidden_channels
    table = parameters["node_embedding.linear.weight"].reshape(-1, channels)
    n_elements = len(table)
    vectors = pair_vectors(graph, strain).astype(table.dtype)
    around = surroundings(vectors, graph, n_elements, buffers, settings)
    features = table / np.sqrt(n_elements).astype(table.dtype)
    readouts = []
    for layer in range(settings.n_layers):
        features = interaction_layer(features, around, parameters, buffers, layer, settings)
        readouts.append(_readout(features, parameters, layer, settings))
    return settings.scale * sum(readouts) + settings.shift


def pair_vectors(graph: Graph, strain: jax.Array | None) -> jax.Array:
    """(P, 3) vectors from sender to receiver, Å."""
    vectors = take(graph.positions, graph.pair_receiver) - take(graph.positions, graph.pair_sender) + graph.pair_shift
    if strain is None:
        return vectors
    symmetric = (strain + strain.transpose(0, 2, 1)) / 2
    return vectors + jnp.einsum("pi,pij->pj", vectors, take(symmetric, graph.pair_structure))


def _readout(features: jax.Array, parameters, layer: int, settings: MaceSettings) -> jax.Array:
    """(N,) a layer's contribution to the energy: linear, but for the last of several layers."""
    prefix = f"readouts.{layer}."
    if layer < settings.n_layers - 1 or settings.n_layers == 1:
        return linear(features, parameters[prefix + "linear.weight"])[:, 0]
    hidden = jax.nn.silu(linear(features, parameters[prefix + "linear_1.weight"])) * settings.silu_factor
    return linear(hidden, parameters[prefix + "linear_2.weight"])[:, 0]
