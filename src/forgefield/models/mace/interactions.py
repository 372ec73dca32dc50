"""MACE's interaction blocks: from features to messages, and what bypasses the product of the messages."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from forgefield.models.mace.contraction import lax_split
from forgefield.models.mace.convolution import convolution, mix_paths
from forgefield.models.mace.linear import Features, add, element_linear, equivariant_linear, scalar_linear, scaled
from forgefield.models.mace.networks import fully_connected, hidden_layers, normalized_network
from forgefield.models.mace.settings import SIGMOID_FACTOR, Layer, MaceSettings
from forgefield.models.mace.surroundings import Surroundings, take


class Interaction(NamedTuple):
    """Messages of degrees 0 to l_max, and the residual connection where the block has one."""

    messages: Features
    residual: Features


def interaction(
    features: Features, around: Surroundings, parameters: Mapping[str, jax.Array], layer: Layer, settings: MaceSettings
) -> Interaction:
    """Evaluate a block by its name.

    Args:
        features: (N, 2l + 1, C) by degree; in the first layer (Z, 1, C) by element.
        around: what surrounds the atoms.
        parameters: of the whole model.
        layer: which block.
        settings: of the model.
    """
    prefix = f"interactions.{layer.index}."
    own = {name.removeprefix(prefix): value for name, value in parameters.items() if name.startswith(prefix)}
    if "NonLinear" in layer.interaction:
        return _non_linear(features, around, own, layer, settings)
    if "Att" in layer.interaction:
        return _attentive(features, around, own, layer, settings)
    return _agnostic(features, around, own, layer, settings)


def _agnostic(features, around, own, layer: Layer, settings: MaceSettings) -> Interaction:
    """Weights depend on distances only, hence once for each pair; sums are divided by a constant or by a density."""
    channels = settings.hidden_channels
    *maps, last = _radial_maps(own)
    hidden = hidden_layers([around.basis], maps, settings.silu_factor) if maps else around.basis
    by_path = lax_split(hidden @ scaled(last, len(last)), layer.source_channels)
    weights = [_by_slot(part, around) for part in by_path]
    messages = _messages(features, weights, around, own, layer, settings)
    if "Density" in layer.interaction:
        density = jnp.tanh(fully_connected([around.basis], [own["density_fn.layer0.weight"]], 1.0) ** 2)[:, 0]
        total = 1 + around.total(_by_slot(density, around))
        messages = [part / total[:, None, None] for part in messages]
    else:
        messages = [part / settings.avg_num_neighbors for part in messages]
    if not layer.residual:
        return Interaction(element_linear(messages, own["skip_tp.weight"], around.elements, channels), [])
    kept = features[: layer.output_l_max + 1]
    residual = element_linear(kept, own["skip_tp.weight"], _rows(around, layer), channels)
    return Interaction(messages, _by_atom(residual, around, layer))


def _attentive(features, around, own, layer: Layer, settings: MaceSettings) -> Interaction:
    """Weights depend on the scalars of both atoms, too."""
    down = _by_atom([scalar_linear(features[0], own["linear_down.weight"])], around, layer)[0][:, 0]
    inputs = [take(around.basis, around.pair), take(down, around.atom), take(down, around.receiver)]
    weights = fully_connected(inputs, _radial_maps(own), settings.silu_factor)
    weights = lax_split(_cut(weights, around), layer.source_channels)
    messages = _messages(features, weights, around, own, layer, settings)
    residual = equivariant_linear(
        features[: layer.output_l_max + 1], own["skip_linear.weight"], settings.hidden_channels
    )
    messages = [part / settings.avg_num_neighbors for part in messages]
    return Interaction(messages, _by_atom(residual, around, layer))


def _non_linear(features, around, own, layer: Layer, settings: MaceSettings) -> Interaction:
    """Weights depend on the elements of both atoms; messages pass a gate."""
    channels, n_elements = settings.hidden_channels, around.elements.shape[1]
    embedded = [
        around.elements @ scaled(own[f"{side}_embedding.weight"], n_elements).reshape(n_elements, channels)
        for side in ("source", "target")
    ]
    ends = [take(part, atom) for part, atom in zip(embedded, (around.atom, around.receiver), strict=True)]
    inputs = [take(around.basis, around.pair), *ends]
    weights = lax_split(_cut(normalized_network(inputs, own, "conv_tp_weights"), around), layer.source_channels)
    density = _cut(jnp.tanh(normalized_network(inputs, own, "density_fn") ** 2), around)[..., 0]
    density = around.total(density)
    sources = _sources(features, around, own, layer)
    gated = {degree: channels * (settings.l_max + 1 if degree == 0 else 1) for degree in range(settings.l_max + 1)}
    messages = mix_paths(convolution(sources, weights, layer, around), own["linear_1.weight"], layer, gated)
    messages = [part / (density * own["beta"] + own["alpha"])[:, None, None] for part in messages]
    messages = add(messages, _gate_residual(sources, own["linear_res.weight"], gated))
    messages = equivariant_linear(_gate(messages, channels, settings), own["linear_2.weight"], channels)
    residual = equivariant_linear(features[: layer.output_l_max + 1], own["skip_tp.weight"], channels)
    return Interaction(messages, _by_atom(residual, around, layer))


def _gate_residual(sources: Features, weight: jax.Array, channels: Mapping[int, int]) -> Features:
    width, start, result = sources[0].shape[-1], 0, []
    for degree, part in enumerate(sources[: len(channels)]):
        size = width * channels[degree]
        result.append(part @ scaled(weight[start : start + size], width).reshape(width, -1))
        start += size
    return result


def _gate(messages: Features, channels: int, settings: MaceSettings) -> Features:
    """SiLU of scalars; higher degrees are multiplied by a sigmoid of further scalars."""
    scalars, *gates = lax_split(messages[0], channels)
    gated = [part * jax.nn.sigmoid(gate) * SIGMOID_FACTOR for part, gate in zip(messages[1:], gates, strict=True)]
    return [jax.nn.silu(scalars) * settings.silu_factor, *gated]


def _messages(features, weights, around: Surroundings, own, layer: Layer, settings: MaceSettings) -> Features:
    sums = convolution(_sources(features, around, own, layer), weights, layer, around)
    channels = dict.fromkeys(range(settings.l_max + 1), settings.hidden_channels)
    return mix_paths(sums, own["linear.weight"], layer, channels)


def _sources(features: Features, around: Surroundings, own, layer: Layer) -> Features:
    """What each atom sends to its neighbors."""
    kept = features[: layer.source_l_max + 1]
    return _by_atom(equivariant_linear(kept, own["linear_up.weight"], layer.source_channels), around, layer)


def _radial_maps(own: Mapping[str, jax.Array]) -> list[jax.Array]:
    """The weights of a radial network without biases, first to last."""
    return [own[name] for name in sorted(own) if name.startswith("conv_tp_weights.")]


def _by_slot(values: jax.Array, around: Surroundings) -> jax.Array:
    """Values of pairs (P, ...), cut off where the basis is not, for each neighbor slot (R, K, ...)."""
    if around.cutoff is not None:
        values = values * around.cutoff.reshape(-1, *[1] * (values.ndim - 1))
    return take(values, around.pair)


def _cut(values: jax.Array, around: Surroundings) -> jax.Array:
    """Values of slots (R, K, ...), cut off where the basis is not."""
    return values if around.cutoff is None else values * take(around.cutoff, around.pair)[..., None]


def _rows(around: Surroundings, layer: Layer) -> jax.Array:
    """One-hot elements of the rows of a layer's features."""
    return jnp.eye(around.elements.shape[1], dtype=around.elements.dtype) if layer.index == 0 else around.elements


def _by_atom(features: Features, around: Surroundings, layer: Layer) -> Features:
    """Features of the first layer, which are by element, for each atom."""
    return [jnp.einsum("nz,zmc->nmc", around.elements, part) for part in features] if layer.index == 0 else features
