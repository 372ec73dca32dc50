"""Running compiled steps over all batches of a loader, the next batches made in the background."""

import math
from collections import deque
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
from jax import Array

from forgefield.data.batching import Batch
from forgefield.data.loaders import BatchLoader
from forgefield.data.prefetch import Timed
from forgefield.trainers.epoch_trainer import NotFiniteError
from forgefield.trainers.metrics import metrics
from forgefield.trainers.parallel import Parallelism
from forgefield.trainers.steps import StepInfo, TrainState


def train_epoch(
    step: Callable[[TrainState, Batch], tuple[TrainState, StepInfo]],
    state: TrainState,
    loader: BatchLoader,
    epoch: int,
    parallel: Parallelism,
    on_step: Callable[[float], None],
    check: Callable[[TrainState], None],
) -> tuple[TrainState, float, float]:
    """All steps of an epoch.

    The state passed in is consumed. ``on_step`` is called with each step's loss, ``check`` with the state after it.

    Returns:
        The new state, the mean of the steps' losses, and the seconds that steps waited for their batches.

    Raises:
        NotFiniteError: the loss or gradient of a step is not finite; it holds the state before that step.
    """
    losses: list[float] = []
    # the loss of a step is read one step later, so that the device has its next work before it is waited for
    waiting: deque[tuple[StepInfo, np.ndarray]] = deque()

    def read_one() -> None:
        info, rows = waiting.popleft()
        losses.append(float(info.loss))
        if not (math.isfinite(losses[-1]) and math.isfinite(float(info.gradient_norm))):
            raise NotFiniteError(f"step {len(losses)}", loader.frames(rows), state)
        on_step(losses[-1])

    with closing(parallel.batches(loader, epoch)) as batches:
        timed = Timed(batches)
        for loaded in timed:
            state, info = step(state, parallel.placed(loaded))
            waiting.append((info, loaded.rows))
            if len(waiting) > 1:
                read_one()
            check(state)
        while waiting:
            read_one()
    return state, float(np.mean(losses)), timed.seconds


def evaluate(
    step: Callable[[Any, Batch], dict[str, Array]], params: Any, loader: BatchLoader, parallel: Parallelism
) -> dict[str, float]:
    """Metrics over all structures of a loader, each counted once; see :func:`forgefield.trainers.metrics.metrics`.

    Raises:
        NotFiniteError: the loss of a batch is not finite.
    """
    sums: dict[str, float] = {}
    structures = 0
    with closing(parallel.batches(loader, 0)) as batches:
        for loaded in batches:
            structures += len(loaded.rows)
            for name, value in step(params, parallel.placed(loaded)).items():
                sums[name] = sums.get(name, 0.0) + float(value)
            if not math.isfinite(sums["loss"]):
                raise NotFiniteError("evaluation", loader.frames(loaded.rows))
    return metrics(sums, structures)
