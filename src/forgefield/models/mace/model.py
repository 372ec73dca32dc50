"""The energy of packed structures by MACE."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.data.batching import Graph
from forgefield.models.mace.contraction import Product, lax_split, products, symmetric_contraction
from forgefield.models.mace.interactions import interaction
from forgefield.models.mace.linear import Features, add, equivariant_linear, scaled
from forgefield.models.mace.readouts import readout
from forgefield.models.mace.settings import Kernels, Layer, MaceSettings
from forgefield.models.mace.surroundings import Surroundings, surroundings, take


def energy_function(
    config: Mapping[str, Any],
    buffers: Mapping[str, np.ndarray],
    elements: Sequence[int],
    kernels: Kernels = "reference",
) -> Callable[..., jax.Array]:
    """The model as a function ``energies(parameters, graph, strain=None)``, to be traced by JAX.

    Args:
        config: content of :class:`MaceSettings`.
        buffers: mace-torch's radial and U buffers by name.
        elements: atomic numbers in the model's order.
        kernels: what evaluates products and convolutions.

    Returns:
        A function that gives (B,) energies in eV without energy shifts, in the dtype of the parameters. With a
        ``strain`` (B, 3, 3) the vectors of all pairs, hence atoms and cell, are strained by its symmetric part.
    """
    settings = MaceSettings.model_validate(config)
    of_kernels = [layer._replace(kernels=kernels) for layer in settings.layers]
    layers = [(layer, products(layer, buffers)) for layer in of_kernels]

    def energies(parameters: Mapping[str, jax.Array], graph: Graph, strain: jax.Array | None = None) -> jax.Array:
        vectors = pair_vectors(graph, strain).astype(parameters["node_embedding.linear.weight"].dtype)
        # GPUs would otherwise round float32 products to fewer bits
        with jax.default_matmul_precision("float32"):
            around = surroundings(vectors, graph, elements, buffers, settings)
            atoms = _atom_energies(parameters, around, layers, settings)
        order = graph.neighbors.atom_order
        atoms = atoms * take(graph.atom_mask, order).astype(atoms.dtype)
        return jax.ops.segment_sum(atoms, take(graph.atom_structure, order), num_segments=graph.n_atoms.shape[0])

    return energies


def pair_vectors(graph: Graph, strain: jax.Array | None) -> jax.Array:
    """(P, 3) vectors from sender to receiver, Å."""
    vectors = take(graph.positions, graph.pair_receiver) - take(graph.positions, graph.pair_sender) + graph.pair_shift
    if strain is None:
        return vectors
    symmetric = (strain + strain.transpose(0, 2, 1)) / 2
    return vectors + jnp.einsum("pi,pij->pj", vectors, take(symmetric, graph.pair_structure))


def _atom_energies(parameters, around: Surroundings, layers, settings: MaceSettings) -> jax.Array:
    """(N,) energies in eV; those of padded atoms mean nothing."""
    n_elements, channels = around.elements.shape[1], settings.hidden_channels
    features = [scaled(parameters["node_embedding.linear.weight"], n_elements).reshape(n_elements, 1, channels)]
    terms = [] if around.repulsion is None else [around.repulsion]
    for layer, of_layer in layers:
        features = _layer(features, around, parameters, layer, of_layer, settings)
        first_read = settings.n_layers - len(settings.readouts)
        if layer.index >= first_read:
            terms.append(readout(features[0][:, 0], parameters, layer.index - first_read, settings))
    return settings.scale * sum(terms) + settings.shift


def _layer(
    features: Features, around: Surroundings, parameters, layer: Layer, of_layer: Sequence[Product], settings
) -> Features:
    """New features from messages, their product, and what bypasses it."""
    messages, residual = interaction(features, around, parameters, layer, settings)
    components = [c for part in messages for c in lax_split(part.reshape(len(part), -1), settings.hidden_channels)]
    species = jnp.ones_like(around.elements[:, :1]) if settings.agnostic_product else around.elements
    contracted = [
        jnp.stack(symmetric_contraction(product, parameters, components, species), axis=1) for product in of_layer
    ]
    update = equivariant_linear(
        contracted, parameters[f"products.{layer.index}.linear.weight"], settings.hidden_channels
    )
    return add(update, residual)
