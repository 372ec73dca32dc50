"""The networks that give convolution weights from distances, and for some blocks from the atoms, too."""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp

from forgefield.models.mace.linear import scaled

# PyTorch's default of LayerNorm
LAYER_NORM_EPSILON = 1e-5


def fully_connected(inputs: Sequence[jax.Array], weights: Sequence[jax.Array], silu_factor: float) -> jax.Array:
    """e3nn's network without biases; zero input gives zero. ``inputs`` are as of :func:`_first`."""
    *hidden, last = weights
    if not hidden:
        return _first(inputs, scaled(last, len(last)))
    return hidden_layers(inputs, hidden, silu_factor) @ scaled(last, len(last))


def hidden_layers(inputs: Sequence[jax.Array], weights: Sequence[jax.Array], silu_factor: float) -> jax.Array:
    """What the last map of :func:`fully_connected` is applied to."""
    first, *later = [scaled(weight, len(weight)) for weight in weights]
    hidden = jax.nn.silu(_first(inputs, first)) * silu_factor
    for weight in later:
        hidden = jax.nn.silu(hidden @ weight) * silu_factor
    return hidden


def normalized_network(inputs: Sequence[jax.Array], named: Mapping[str, jax.Array], prefix: str) -> jax.Array:
    """mace-torch's RadialMLP: affine maps, all but the last followed by layer normalization and SiLU."""
    count = sum(name.startswith(f"{prefix}.net.") and name.endswith(".bias") for name in named) // 2 + 1
    hidden = _first(inputs, named[f"{prefix}.net.0.weight"].T) + named[f"{prefix}.net.0.bias"]
    for i in range(1, count):
        scale, offset = (named[f"{prefix}.net.{3 * i - 2}.{name}"] for name in ("weight", "bias"))
        hidden = jax.nn.silu(_layer_norm(hidden) * scale + offset)
        hidden = hidden @ named[f"{prefix}.net.{3 * i}.weight"].T + named[f"{prefix}.net.{3 * i}.bias"]
    return hidden


def _first(inputs: Sequence[jax.Array], weight: jax.Array) -> jax.Array:
    """Product of concatenated inputs (broadcast against each other but for the last axis), not concatenated."""
    start, total = 0, 0.0
    for part in inputs:
        total = total + part @ weight[start : start + part.shape[-1]]
        start += part.shape[-1]
    return total


def _layer_norm(x: jax.Array) -> jax.Array:
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
