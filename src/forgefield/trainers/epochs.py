"""Running compiled steps over all batches of a loader, the next batches made and placed in the background."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh

from forgefield.data.batching import Batch, shift_energy
from forgefield.data.loaders import BatchLoader, LoadedBatch
from forgefield.data.prefetch import Prefetch
from forgefield.data.structures import Structure
from forgefield.trainers.epoch_trainer import NotFiniteError
from forgefield.trainers.losses import Predicted
from forgefield.trainers.metrics import metrics
from forgefield.trainers.parallel import sharded
from forgefield.trainers.steps import StepInfo, TrainState


def train_epoch(
    step: Callable[[TrainState, Batch], tuple[TrainState, StepInfo]],
    state: TrainState,
    loader: BatchLoader,
    epoch: int,
    mesh: Mesh | None,
    on_step: Callable[[float], None],
) -> tuple[TrainState, float]:
    """All steps of an epoch.

    Returns:
        The new state and the mean of the steps' losses.

    Raises:
        NotFiniteError: the loss or gradient of a step is not finite.
    """
    losses: list[float] = []
    # the loss of a step is read one step later, so that the device has its next work before it is waited for
    waiting: deque[tuple[StepInfo, np.ndarray]] = deque()

    def read_one() -> None:
        info, rows = waiting.popleft()
        losses.append(float(info.loss))
        if not (math.isfinite(losses[-1]) and math.isfinite(float(info.gradient_norm))):
            raise NotFiniteError(len(losses), sorted(s.source_index for s in loader.structures(rows)))
        on_step(losses[-1])

    with Prefetch(_placed(loader, epoch, mesh)) as batches:
        for loaded in batches:
            state, info = step(state, loaded.batch)
            waiting.append((info, loaded.rows))
            if len(waiting) > 1:
                read_one()
        while waiting:
            read_one()
    return state, float(np.mean(losses))


def evaluate(
    step: Callable[[Any, Batch], dict[str, Array]], params: Any, loader: BatchLoader, mesh: Mesh | None
) -> dict[str, float]:
    """Metrics over all structures of a loader, each counted once; see :func:`forgefield.trainers.metrics.metrics`."""
    sums: dict[str, float] = {}
    structures = 0
    with Prefetch(_placed(loader, 0, mesh)) as batches:
        for loaded in batches:
            structures += len(loaded.rows)
            for name, value in step(params, loaded.batch).items():
                sums[name] = sums.get(name, 0.0) + float(value)
    return metrics(sums, structures)


def predict(
    step: Callable[[Any, Batch], Predicted], params: Any, loader: BatchLoader, mesh: Mesh | None
) -> list[Structure]:
    """The loader's structures, in the order of their source, with predicted labels; energy shifts are included."""
    found: dict[int, Structure] = {}
    with Prefetch(_placed(loader, 0, mesh)) as batches:
        for loaded in batches:
            found.update(_unpacked(loader, loaded, jax.tree.map(np.asarray, step(params, loaded.batch))))
    return [found[row] for row in sorted(found)]


def _placed(loader: BatchLoader, epoch: int, mesh: Mesh | None) -> Iterator[LoadedBatch]:
    for loaded in loader.epoch(epoch):
        yield loaded._replace(batch=sharded(loaded.batch, mesh))


def _unpacked(loader: BatchLoader, loaded: LoadedBatch, predicted: Predicted) -> Iterator[tuple[int, Structure]]:
    """Row number and structure, with its predicted labels, of everything in a batch."""
    rows = iter(zip(loaded.rows.tolist(), loader.structures(loaded.rows), strict=True))
    shifts = loader.neighbors.shifts
    for part, length in enumerate(loaded.part_lengths):
        start = 0
        for i in range(length):
            row, structure = next(rows)
            end = start + len(structure)
            virial = None if predicted.virial is None else predicted.virial[part, i].astype(np.float64)
            yield (
                row,
                replace(
                    structure,
                    energy=float(predicted.energy[part, i]) + shift_energy(structure, shifts),
                    forces=predicted.forces[part, start:end].astype(np.float64),
                    virial=virial,
                ),
            )
            start = end
