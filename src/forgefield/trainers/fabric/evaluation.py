"""Metrics over a data set of which each process computes its parts."""

import math
from collections.abc import Callable

from forgefield.data.prefetch import Prefetch
from forgefield.data.processes import Processes
from forgefield.trainers.engine import NotFiniteError
from forgefield.trainers.fabric.graphs import TorchBatch
from forgefield.trainers.fabric.loader import StepLoader
from forgefield.trainers.metrics import metrics
from forgefield.trainers.stopping import Stop, StopAskedError


def evaluate(
    error_sums: Callable[[TorchBatch], dict[str, float]], loader: StepLoader, processes: Processes, stop: Stop
) -> dict[str, float]:
    """Metrics from the error sums of all batches, each structure counted once; the same on every process.

    Processes hear of one another only at the end.

    Raises:
        NotFiniteError: the loss of a batch is not finite, on any process.
        StopAskedError: a process is asked to end the training.
    """
    sums: dict[str, float] = {}
    unsound = None
    with Prefetch(loader.epoch(0)) as batches:
        for number, loaded in enumerate(batches):
            if stop.asked:
                break
            for part in loaded.parts:
                for name, value in error_sums(part).items():
                    sums[name] = sums.get(name, 0.0) + value
            if not math.isfinite(sums.get("loss", 0.0)):
                unsound = (number, loader.frames(loaded.rows))
                break
    everyone = processes.exchange((sums, unsound, stop.asked))
    if found := [first for _, first, _ in everyone if first is not None]:
        raise NotFiniteError("evaluation", min(found)[1])
    if any(asked for *_, asked in everyone):
        raise StopAskedError
    # a process without a structure has no sums
    names = {name: None for own, *_ in everyone for name in own}
    return metrics({name: sum(own.get(name, 0.0) for own, *_ in everyone) for name in names}, len(loader.source))
