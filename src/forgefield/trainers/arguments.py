"""Checks of what :class:`forgefield.trainers.ForceMatching` is given."""

import difflib
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from pydantic import ValidationError

from forgefield.config.base import Fraction, NonNegative, Positive, PositiveInteger, Section, Seed
from forgefield.config.messages import first_problem
from forgefield.data.store.layout import columns
from forgefield.data.targets import FIELDS, Targets, default_weight
from forgefield.errors import UserError

TERMS = tuple(FIELDS)
# names in stores and of metrics
TAKEN = {*columns(1, has_virial=True), *FIELDS.values(), "loss"}


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

    checkpoint_steps: PositiveInteger | None
    """optimizer steps between checkpoints"""

    checkpoint_minutes: Positive | None
    """minutes between checkpoints"""

    keep_checkpoints: PositiveInteger
    """how many checkpoints stay"""

    check_replicas_every: PositiveInteger | None
    """steps between comparisons of the devices"""

    seed: Seed
    """of the shuffling"""


def checked_settings(additional: Collection[str] = (), **arguments: Any) -> Settings:
    """The arguments as :class:`Settings`, with the names of additional targets among the loss's terms.

    Raises:
        UserError: names the first that is wrong, and what is expected.
    """
    try:
        settings = Settings(**arguments)
    except ValidationError as error:
        raise UserError(first_problem(error, Settings)) from None
    _check_terms("gammas", settings.gammas, (*TERMS, *additional))
    for name in additional:
        if name not in settings.gammas:
            raise UserError(f"gammas: additional target {name!r} has none; give the weight of each term of the loss")
    if not any(weight > 0 for weight in settings.gammas.values()):
        raise UserError("gammas: every weight is 0, so nothing would be trained; give one term a positive weight")
    return settings


def checked_targets(
    additional: Mapping[str, Callable[..., Any]] | None, weights_keys: Mapping[str, str] | None
) -> Targets:
    """What is to be read besides a structure's own labels and their weights.

    Raises:
        UserError: a name means something else already, or a weight is for an unknown target.
    """
    for name, template in (additional or {}).items():
        if not isinstance(name, str) or name in TAKEN or name.endswith(default_weight("")):
            raise UserError(f"additional_targets: {name!r} means something else already; choose another name")
        if not callable(template):
            raise UserError(f"additional_targets: {name} is no function; expected template(params)(graph)")
    _check_terms("weights_keys", weights_keys or {}, (*TERMS, *(additional or {})))
    # the usual weights of a structure's own labels come with these
    own = {target: default_weight(target) for target in TERMS}
    weights = {target: key for target, key in (weights_keys or {}).items() if own.get(target) != key}
    for target, key in weights.items():
        if not isinstance(key, str):
            raise UserError(f"weights_keys: expected the name of the weights of {target}, found {key!r}")
    return Targets(tuple(additional or {}), weights)


def _check_terms(argument: str, found: Collection[str], terms: Collection[str]) -> None:
    for key in found:
        if key not in terms:
            near = difflib.get_close_matches(str(key), terms, n=1, cutoff=0.0)[0]
            raise UserError(f"{argument}: unknown term {key!r}; did you mean {near!r}? Terms: {', '.join(terms)}")


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
