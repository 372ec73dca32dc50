"""The compiled functions of a training: one optimizer step, the error sums of a batch, its predictions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import optax
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, PartitionSpec

from forgefield.data.batching import Batch, Graph
from forgefield.models.energy import energy_and_forces, energy_forces_virial
from forgefield.trainers.losses import Loss, Predicted, error_sums
from forgefield.trainers.optimizers import update_average
from forgefield.trainers.parallel import AXIS

EnergyTemplate = Callable[[Any], Callable[..., Array]]


class TrainState(NamedTuple):
    """Everything a step changes.

    Attributes:
        params: the energy function's parameters.
        opt_state: the optimizer's state.
        average: moving average of the parameters; None where none is kept.
        step: optimizer steps done, int32.
    """

    params: Any
    opt_state: optax.OptState
    average: Any
    step: Array


class StepInfo(NamedTuple):
    """Loss of the batch before the update, and the global norm of its gradient before clipping."""

    loss: Array
    gradient_norm: Array


def predict(template: EnergyTemplate, params: Any, graph: Graph, virial: bool) -> Predicted:
    """Energies and their derivatives: forces -dE/dR, and virials -dE/dstrain where asked for."""

    def energy(params: Any, graph: Graph, strain: Array | None = None) -> Array:
        return template(params)(graph, strain)

    if virial:
        return Predicted(*energy_forces_virial(energy)(params, graph))
    return Predicted(*energy_and_forces(energy)(params, graph), None)


def train_step(
    template: EnergyTemplate,
    optimizer: optax.GradientTransformation,
    loss: Loss,
    *,
    ema: float | None,
    virial: bool,
    mesh: Mesh | None,
) -> Callable[[TrainState, Batch], tuple[TrainState, StepInfo]]:
    """Compile an optimizer step. The state passed in is consumed."""

    def local(params: Any, batch: Batch) -> tuple[Array, Any]:
        def mean_loss(params: Any) -> Array:
            predicted = predict(template, params, batch.graph, virial)
            # the mean over the capacity, padding included: devices then weigh alike, however full they are
            return loss.per_structure(predicted, batch.graph, batch.labels).mean()

        return jax.value_and_grad(mean_loss)(params)

    loss_and_gradient = local if mesh is None else _over_devices(local, mesh, jax.lax.pmean)

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, StepInfo]:
        value, gradient = loss_and_gradient(state.params, batch)
        updates, opt_state = optimizer.update(gradient, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        done = state.step + 1
        average = None if ema is None else update_average(state.average, params, ema, done)
        return TrainState(params, opt_state, average, done), StepInfo(value, optax.tree.norm(gradient))

    return jax.jit(step, donate_argnums=0)


def evaluate_step(
    template: EnergyTemplate, loss: Loss, *, virial: bool, mesh: Mesh | None
) -> Callable[[Any, Batch], dict[str, Array]]:
    """Compile the error sums of a batch over all devices."""

    def local(params: Any, batch: Batch) -> dict[str, Array]:
        return error_sums(loss, predict(template, params, batch.graph, virial), batch.graph, batch.labels)

    return jax.jit(local if mesh is None else _over_devices(local, mesh, jax.lax.psum))


def _over_devices(local: Callable[[Any, Batch], Any], mesh: Mesh, reduce: Callable[[Array, str], Array]) -> Callable:
    """Run ``local(params, part)`` on each device's part of a batch and reduce the results in one collective."""

    def on_device(params: Any, batch: Batch) -> Any:
        flat, restore = ravel_pytree(local(params, jax.tree.map(lambda x: x[0], batch)))
        return restore(reduce(flat, AXIS))

    # check_vma=False: gradients stay those of the local loss until the explicit reduction, also through custom
    # kernels that do not tell along which mesh axes their cotangents vary
    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(PartitionSpec(), PartitionSpec(AXIS)),
        out_specs=PartitionSpec(),
        check_vma=False,
    )


def predict_step(template: EnergyTemplate, *, virial: bool, mesh: Mesh | None) -> Callable[[Any, Batch], Predicted]:
    """Compile predictions of a batch; every array of the result has a leading axis over devices."""

    def local(params: Any, batch: Batch) -> Predicted:
        return jax.tree.map(lambda x: x[None], predict(template, params, batch.graph, virial))

    if mesh is None:
        return jax.jit(local)
    by_device = PartitionSpec(AXIS)
    on_device = jax.shard_map(
        lambda params, batch: local(params, jax.tree.map(lambda x: x[0], batch)),
        mesh=mesh,
        in_specs=(PartitionSpec(), by_device),
        out_specs=by_device,
        check_vma=False,
    )
    return jax.jit(on_device)
