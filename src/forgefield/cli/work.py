"""Does the work of a run, in one process or in several, alone on its directory, and ends it at signals."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forgefield.cli.interrupts import interruptible
from forgefield.config import Config, RunConfig

if TYPE_CHECKING:
    from forgefield.data.processes import Processes
    from forgefield.prepare import RunPaths
    from forgefield.trainers.stopping import Stop

Work = Callable[[RunConfig, "RunPaths", "Processes | None", "Stop"], None]


def do(work: Work, config: Config, run: RunConfig, paths: "RunPaths", wait: bool, trains: bool = False) -> None:
    """Make the run's inputs, then do the work in one process or in several, which are started here if need be."""
    from forgefield import launch
    from forgefield.prepare import removed_on_error
    from forgefield.trainers.stopping import Stop

    stop, standing = Stop(launch.started()), partial(_standing, run, paths, trains)
    alone = _alone(paths.output, wait, trains)
    if launch.is_started(run):
        with launch.ended_together(), removed_on_error(paths.output):
            launch.join(run)
            # after JAX, which would take SIGTERM for a mere note
            with interruptible(standing, stop, speaks=launch.is_first(), patient=launch.is_child()):
                _do_together(work, config, run, paths, alone if launch.is_first() else nullcontext(), stop, trains)
        return
    launch.require_here(run)
    with alone as lock, removed_on_error(paths.output), interruptible(standing, stop):
        _prepare(config, run, paths, trains)
        if launch.process_count(run) > 1:
            with stop.watched() if trains else nullcontext():
                launch.start(run, paths.output, stop, keep=[lock])
        else:
            work(run, paths, None, stop)


@contextmanager
def _alone(output: Path, wait: bool, trains: bool) -> Iterator[int]:
    """With the lock on a run, whose descriptor this yields; the error of a training stays for `forgefield runs`."""
    from forgefield.prepare import only_one
    from forgefield.prepare.standing import noted_error

    with only_one(output, wait=wait) as lock, noted_error(output) if trains else nullcontext():
        yield lock


def _prepare(config: Config, run: RunConfig, paths: "RunPaths", trains: bool) -> None:
    """Make the run's inputs, if there is something to do with them."""
    from forgefield.prepare import prepare_run

    if not trains:
        from forgefield.evaluation.evaluate import require_trained

        require_trained(paths.output)
    prepare_run(config, run, paths)


def _do_together(
    work: Work,
    config: Config,
    run: RunConfig,
    paths: "RunPaths",
    alone: AbstractContextManager,
    stop: "Stop",
    trains: bool,
) -> None:
    """This process's share of the work; process 0 makes the inputs, unless they were there.

    The lock on the run is held by forgefield where that has started the processes, else by process 0.
    """
    from forgefield.trainers.run import connect
    from forgefield.trainers.shared import require_shared

    processes = connect(run)
    require_shared(paths.output, processes)
    with alone:
        if processes.index == 0:
            _prepare(config, run, paths, trains)
        processes.broadcast(None)  # the others wait for it
        work(run, paths, processes, stop)


def _standing(run: RunConfig, paths: "RunPaths", trains: bool) -> str:
    """What is left of a run that is stopped now, and how to go on."""
    from forgefield.trainers.checkpoints import saved_checkpoints
    from forgefield.trainers.record import Place

    saved = saved_checkpoints(paths.output / "checkpoints")
    if not trains:
        return "the same command starts again"
    if not saved:
        longer = "; if a time limit ended it, raise slurm.hours" if "SLURM_JOB_ID" in os.environ else ""
        return f"there is no checkpoint yet: the same command starts from the beginning{longer}"
    place = f"{Place.of(saved[0])} of {run.training.epochs} is the last in {saved[0].parent}"
    return f"{place}: the same command continues after it"
