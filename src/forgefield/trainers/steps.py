"""The compiled functions of a training: one optimizer step, the error sums of a batch, its predictions."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from forgefield.data.batching import Batch, Graph
from forgefield.models.energy import energy_and_forces, energy_forces_virial
from forgefield.trainers.losses import Loss, Predicted, error_sums
from forgefield.trainers.optimizers import update_average
from forgefield.trainers.parallel.base import Parallelism

Template = Callable[[Any], Callable[..., Array]]


class TrainState(NamedTuple):
    """Everything a step changes.

    Attributes:
        params: the energy function's parameters.
        opt_state: the optimizer's state.
        average: moving average of the parameters; None where none is kept.
        step: optimizer steps done, int32.
        sound: whether every loss and gradient so far was finite; from the first that was not, nothing changes any more.
    """

    params: Any
    opt_state: optax.OptState
    average: Any
    step: Array
    sound: Array


class StepInfo(NamedTuple):
    """What a step tells.

    Attributes:
        loss: of the batch before the update.
        gradient_norm: the global norm of its gradient before clipping.
        stop: above 0 where a process asks all to end the training.
    """

    loss: Array
    gradient_norm: Array
    stop: Array


class Templates(NamedTuple):
    """What a training has functions for, each ``template(params)(graph)``: energies, and additional targets by name."""

    energy: Template
    targets: Mapping[str, Template] = {}


def predict(templates: Templates, params: Any, graph: Graph, virial: bool) -> Predicted:
    """Energies and their derivatives, forces -dE/dR and virials -dE/dstrain where asked for, and additional targets."""

    def energy(params: Any, graph: Graph, strain: Array | None = None) -> Array:
        return templates.energy(params)(graph, strain)

    targets = {name: template(params)(graph) for name, template in templates.targets.items()}
    if virial:
        return Predicted(*energy_forces_virial(energy)(params, graph), targets)
    return Predicted(*energy_and_forces(energy)(params, graph), None, targets)


def train_step(
    templates: Templates,
    optimizer: optax.GradientTransformation,
    loss: Loss,
    parallel: Parallelism,
    *,
    ema: float | None,
    virial: bool,
    penalty: Callable[[Any], Array] | None = None,
) -> Callable[[TrainState, Batch], tuple[TrainState, StepInfo]]:
    """Compile an optimizer step. The state passed in is consumed."""

    def local(state: TrainState, batch: Batch) -> tuple[Array, Any, Array]:
        def mean_loss(params: Any) -> Array:
            predicted = predict(templates, params, batch.graph, virial)
            # the mean over the capacity, padding included: devices then weigh alike, however full they are
            mean = loss.per_structure(predicted, batch).mean()
            return mean if penalty is None else mean + penalty(params)

        return *jax.value_and_grad(mean_loss)(state.params), batch.stop

    def update(state: TrainState, found: tuple[Array, Any, Array]) -> tuple[TrainState, StepInfo]:
        value, gradient, stop = found
        norm = optax.tree.norm(gradient)
        updates, opt_state = optimizer.update(gradient, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        done = state.step + 1
        average = None if ema is None else update_average(state.average, params, ema, done)
        sound = state.sound & jnp.isfinite(value) & jnp.isfinite(norm)
        new = TrainState(params, opt_state, average, done, sound)
        kept = jax.tree.map(lambda new, old: jnp.where(sound, new, old), new, state._replace(sound=sound))
        return kept, StepInfo(value, norm, stop)

    return parallel.compiled(local, "mean", update, donate=True)


def evaluate_step(
    templates: Templates, loss: Loss, parallel: Parallelism, *, virial: bool
) -> Callable[[Any, Batch], dict[str, Array]]:
    """Compile the error sums of a batch over all devices, and ``stop`` of :class:`StepInfo`."""

    def local(params: Any, batch: Batch) -> dict[str, Array]:
        return error_sums(loss, predict(templates, params, batch.graph, virial), batch) | {"stop": batch.stop}

    return parallel.compiled(local, "sum", lambda params, sums: sums)


def predict_step(templates: Templates, parallel: Parallelism, *, virial: bool) -> Callable[[Any, Batch], Predicted]:
    """Compile predictions of a batch; every array of the result has a leading axis over devices."""
    return parallel.by_device(lambda params, batch: predict(templates, params, batch.graph, virial))
