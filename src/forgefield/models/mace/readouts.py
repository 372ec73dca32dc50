"""MACE's readouts: an energy from each atom's scalar features."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp

from forgefield.models.mace.linear import scalar_linear
from forgefield.models.mace.settings import MaceSettings

GATES: dict[str | None, Callable[[jax.Array], jax.Array]] = {
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
    "abs": jnp.abs,
    None: lambda x: x,
}


def readout(scalars: jax.Array, parameters: Mapping[str, jax.Array], index: int, settings: MaceSettings) -> jax.Array:
    """(N,) energies from (N, C) scalars, before scale and shift."""

    def weight(name: str) -> jax.Array:
        return parameters[f"readouts.{index}.{name}"]

    def activated(x: jax.Array) -> jax.Array:
        return GATES[settings.gate](x) * settings.gate_factor

    kind = settings.readouts[index]
    if kind == "LinearReadoutBlock":
        return scalar_linear(scalars, weight("linear.weight"))[:, 0]
    hidden = activated(scalar_linear(scalars, weight("linear_1.weight")))
    if kind == "NonLinearReadoutBlock":
        return scalar_linear(hidden, weight("linear_2.weight"))[:, 0]
    hidden = activated(scalar_linear(hidden, weight("linear_mid.weight")) + weight("linear_mid.bias"))
    return scalar_linear(hidden, weight("linear_2.weight"))[:, 0] + weight("linear_2.bias")[0]
