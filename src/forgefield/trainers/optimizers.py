"""Optimizers, learning-rate schedules and the moving average of parameters."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax


def schedule(
    lr: float,
    total_steps: int,
    kind: Literal["constant", "cosine", "exponential"] = "constant",
    *,
    warmup_steps: int = 0,
    constant_steps: int = 0,
    final_fraction: float = 0.01,
) -> optax.Schedule:
    """Learning rate by step: a linear rise over ``warmup_steps``, then constant or falling to ``final_fraction * lr``.

    Args:
        lr: the highest learning rate.
        total_steps: steps of the whole training, warm-up included; the final value is reached at the last one.
        kind: the shape after the warm-up.
        warmup_steps: steps of the linear rise.
        constant_steps: steps at ``lr`` before the fall.
        final_fraction: the last learning rate as a share of ``lr``; not for ``constant``.
    """
    decay_steps = max(total_steps - warmup_steps - constant_steps - 1, 1)
    if kind == "constant":
        main = optax.constant_schedule(lr)
    elif kind == "cosine":
        main = optax.cosine_decay_schedule(lr, decay_steps, alpha=final_fraction)
    else:
        main = optax.exponential_decay(lr, decay_steps, final_fraction, end_value=final_fraction * lr)
    if constant_steps:
        main = optax.join_schedules([optax.constant_schedule(lr), main], [constant_steps])
    if warmup_steps:
        rise = optax.linear_schedule(lr / (warmup_steps + 1), lr, warmup_steps)
        main = optax.join_schedules([rise, main], [warmup_steps])
    # JAX divides an int32 count in float32, also where everything else is float64
    return lambda step: main(jnp.asarray(step, float))


def optimizer(
    kind: Literal["adam", "adamw"],
    learning_rate: optax.ScalarOrSchedule,
    *,
    weight_decay: float = 0.0,
    clip_norm: float | None = None,
) -> optax.GradientTransformation:
    """Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019), gradients clipped by their global norm first.

    The learning rate is kept in the optimizer's state, where :func:`current_lr` reads it.
    """
    parts = [] if clip_norm is None else [optax.clip_by_global_norm(clip_norm)]
    parts.append(optax.scale_by_adam())
    if kind == "adamw":
        parts.append(optax.add_decayed_weights(weight_decay))
    return optax.chain(*parts, optax.inject_hyperparams(optax.scale_by_learning_rate)(learning_rate))


def current_lr(state: Any) -> float | None:
    """The learning rate of the last step, or None where the optimizer's state does not hold one."""
    value = optax.tree_utils.tree_get(
        state, "learning_rate", filtering=lambda path, value: isinstance(value, jax.Array)
    )
    return None if value is None else float(value)


def update_average(average: Any, params: Any, decay: float, step: jax.Array) -> Any:
    """Exponential moving average after ``step`` steps, counted from 1.

    The decay starts small, min(decay, (1 + step) / (10 + step)) as in torch_ema, which MACE's own training uses, so
    that a short training is not held back by its starting point.
    """
    slow = jnp.minimum(decay, (1.0 + step) / (10.0 + step))
    return jax.tree.map(lambda a, p: (a - (1.0 - slow) * (a - p)).astype(a.dtype), average, params)
