"""Running compiled steps over all batches of a loader, the next batches made in the background."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from jax import Array

from forgefield.data.batching import Batch
from forgefield.data.loaders import BatchLoader
from forgefield.data.prefetch import Timed
from forgefield.trainers.engine import NotFiniteError, StepDone
from forgefield.trainers.metrics import metrics
from forgefield.trainers.parallel import Parallelism
from forgefield.trainers.steps import StepInfo, TrainState
from forgefield.trainers.stopping import StopAskedError

# the loss of a step is read so many steps later, so that the device has its next work before it is waited for
AHEAD = 1


class Watch(NamedTuple):
    """What looks on while steps are made.

    Attributes:
        asked: whether this process is asked to end the training.
        pause: whether all steps should be waited for after so many of the epoch, because their state is to be saved.
        check: looks at the state after every step.
    """

    asked: Callable[[], bool] = lambda: False
    pause: Callable[[int], bool] = lambda steps: False
    check: Callable[[TrainState], None] = lambda state: None


def train_steps(
    step: Callable[[TrainState, Batch], tuple[TrainState, StepInfo]],
    state: TrainState,
    loader: BatchLoader,
    epoch: int,
    parallel: Parallelism,
    watch: Watch,
    start: int = 0,
) -> Iterator[tuple[TrainState, StepDone]]:
    """The steps of an epoch after the first ``start``, with the newest state, which may be ahead of the step.

    The state passed in is consumed. They end early, after the same step on all processes, where one of these is asked.

    Raises:
        NotFiniteError: the loss or gradient of a step is not finite; it holds the state before that step.
    """
    waiting: deque[tuple[StepInfo, np.ndarray]] = deque()
    done, end = start, math.inf

    def read_one() -> StepDone:
        nonlocal done, end
        info, rows = waiting.popleft()
        loss, done = float(info.loss), done + 1
        if not (math.isfinite(loss) and math.isfinite(float(info.gradient_norm))):
            raise NotFiniteError(f"step {done}", loader.frames(rows), state)
        if stop := bool(info.stop):
            # however far each process is ahead: so far all of them are
            end = min(end, done + AHEAD)
        return StepDone(loss, timed.take(), stop, settled=not waiting)

    with closing(parallel.batches(loader, epoch, start)) as batches:
        timed = Timed(batches)
        for made, loaded in enumerate(timed, start + 1):
            state, info = step(state, parallel.placed(loaded.asking(watch.asked())))
            waiting.append((info, loaded.rows))
            while len(waiting) > (0 if watch.pause(made) else AHEAD):
                yield state, read_one()
            watch.check(state)
            if made >= end:
                break
        while waiting:
            yield state, read_one()


def evaluate(
    step: Callable[[Any, Batch], dict[str, Array]],
    params: Any,
    loader: BatchLoader,
    parallel: Parallelism,
    asked: Callable[[], bool] = lambda: False,
) -> dict[str, float]:
    """Metrics over all structures of a loader, each counted once; see :func:`forgefield.trainers.metrics.metrics`.

    Raises:
        NotFiniteError: the loss of a batch is not finite.
        StopAskedError: a process is asked to end the training.
    """
    sums: dict[str, float] = {}
    structures = 0
    with closing(parallel.batches(loader, 0)) as batches:
        for loaded in batches:
            structures += len(loaded.rows)
            found = step(params, parallel.placed(loaded.asking(asked())))
            if float(found.pop("stop")):
                raise StopAskedError
            for name, value in found.items():
                sums[name] = sums.get(name, 0.0) + float(value)
            if not math.isfinite(sums["loss"]):
                raise NotFiniteError("evaluation", loader.frames(loaded.rows))
    return metrics(sums, structures)
