"""Checks of what :class:`forgefield.trainers.ForceMatching` is given."""

import difflib
import warnings
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from pydantic import ValidationError

from forgefield.config.base import Fraction, NonNegative, Positive, PositiveInteger, Section, Seed
from forgefield.config.messages import first_problem
from forgefield.errors import UserError

TERMS = ("U", "F", "virial")


class Settings(Section):
    """The numbers and words among the arguments."""

    gammas: dict[str, NonNegative]
    """weight of each term of the loss"""

    batch: PositiveInteger | None
    """structures per optimizer step"""

    batch_per_device: PositiveInteger | None
    """structures per optimizer step and device"""

    eval_batch: PositiveInteger | None
    """structures per step of evaluation"""

    loss: Literal["mse", "huber"]
    """the penalty"""

    huber_delta: Positive
    """where Huber's penalty turns linear"""

    ema: Fraction | None
    """decay of the moving average"""

    early_stopping: PositiveInteger | None
    """epochs without improvement"""

    checkpoint_every: PositiveInteger
    """epochs between checkpoints"""

    check_replicas_every: PositiveInteger | None
    """steps between comparisons of the devices"""

    seed: Seed
    """of the shuffling"""


def checked_settings(**arguments: Any) -> Settings:
    """The arguments as :class:`Settings`.

    Raises:
        UserError: names the first that is wrong, and what is expected.
    """
    try:
        settings = Settings(**arguments)
    except ValidationError as error:
        raise UserError(first_problem(error, Settings)) from None
    for key in settings.gammas:
        if key not in TERMS:
            near = difflib.get_close_matches(key, TERMS, n=1, cutoff=0.0)[0]
            raise UserError(f"gammas: unknown term {key!r}; did you mean {near!r}? Terms: {', '.join(TERMS)}")
    if not any(weight > 0 for weight in settings.gammas.values()):
        raise UserError("gammas: every weight is 0, so nothing would be trained; give one term a positive weight")
    return settings


def floating_type(params: Any) -> np.dtype:
    """The one type of all arrays of a pytree, which is also the type in which to compute."""
    types = {np.dtype(getattr(x, "dtype", object)) for x in jax.tree.leaves(params)}
    if len(types) != 1 or not jnp.issubdtype(next(iter(types)), jnp.floating):
        names = ", ".join(sorted(str(t) for t in types)) or "none"
        raise UserError(f"init_params: arrays of one floating-point type are expected, not {names}; convert them")
    if types == {np.dtype(np.float64)} and not jax.config.jax_enable_x64:
        raise UserError("init_params: float64 needs jax.config.update('jax_enable_x64', True) before any computation")
    return types.pop()


def global_batch(batch: int | None, per_device: int | None, devices: int) -> int:
    """Structures per optimizer step, however they were given."""
    if per_device is not None:
        warnings.warn("batch_per_device is deprecated; give batch, over all devices", DeprecationWarning, stacklevel=3)
        if batch is not None:
            raise UserError("batch_per_device: batch is given too; leave batch_per_device out")
        batch = per_device * devices
    if batch is None:
        raise UserError("batch: give the number of structures per optimizer step")
    if batch % devices:
        raise UserError(f"batch: {batch} is not a multiple of the {devices} devices that share it; change one")
    return batch
