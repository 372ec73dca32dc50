"""The verbs about one run: train it, evaluate it, plot it.

The library is imported inside the functions, so that ``--help`` loads no engine.
"""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forgefield.cli.interrupts import interruptible
from forgefield.cli.options import (
    AllowChanged,
    ConfigSource,
    Data,
    Model,
    Output,
    Overrides,
    RunName,
    Statistics,
    Wait,
    Words,
    ZeroShot,
    load_run,
)
from forgefield.cli.output import AsJson, stdout_to_stderr
from forgefield.cli.paths import dataset_directory, model_directory, run_directory, statistics_file
from forgefield.config import Config, RunConfig
from forgefield.errors import UserError

if TYPE_CHECKING:
    from forgefield.data.processes import Processes
    from forgefield.prepare import RunPaths
    from forgefield.trainers.stopping import Stop

Work = Callable[[RunConfig, "RunPaths", "Processes | None", "Stop"], None]


def train(
    words: Words = None,
    config: ConfigSource = None,
    run: RunName = None,
    data: Data = None,
    model: Model = None,
    statistics: Statistics = None,
    output: Output = None,
    overrides: Overrides = None,
    wait: Wait = False,
    allow_changed: AllowChanged = None,
) -> None:
    """Fine-tune, or train from scratch; continues from the last checkpoint where there is one."""
    whole, settings = load_run(words, config, run, overrides)
    train_it = partial(_train, allow_changed or ())
    _do(train_it, whole, settings, _paths(settings, data, model, statistics, output), wait, trains=True)


def evaluate(
    words: Words = None,
    config: ConfigSource = None,
    run: RunName = None,
    data: Data = None,
    model: ZeroShot = None,
    statistics: Statistics = None,
    output: Output = None,
    overrides: Overrides = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Compare a run's model with the reference, beside the model it started from."""
    from forgefield.launch import is_first

    whole, settings = load_run(words, config, run, overrides)
    if data is None:
        _require_test_data(whole, settings)
    paths = _paths(settings, data, model, statistics, output)
    with stdout_to_stderr() if as_json else nullcontext():
        _do(_evaluate, whole, settings, paths, wait)
    if as_json and is_first():
        print((paths.output / "metrics.json").read_text(encoding="utf-8"), end="")


def plot(
    words: Words = None,
    config: ConfigSource = None,
    run: RunName = None,
    data: Data = None,
    output: Output = None,
    overrides: Overrides = None,
) -> None:
    """Draw a run's parity plots, errors, learning curve and data as PNG and SVG."""
    from forgefield.evaluation.plots import plot_run

    _, settings = load_run(words, config, run, overrides)
    root = output or run_directory(settings)
    data = data or (dataset_directory(settings.dataset) if settings.output_path is None else root / "data")
    for path in plot_run(root, settings.plots, data if data.exists() else None):
        print(path)
    if not data.exists():
        print(f"{data}: not there, so no data_overview; give --data", file=sys.stderr)


def _paths(
    run: RunConfig, data: Path | None, model: Path | None, statistics: Path | None, output: Path | None
) -> "RunPaths":
    """Where the run's inputs are: as given, or beneath ``output_path``, or where the stages put them."""
    from forgefield.prepare import RunPaths

    if run.output_path is None:
        if data is None and not dataset_directory(run.dataset).exists():
            raise UserError(
                "output_path: missing; give the directory of the run, in which its data are converted, too, or convert "
                f"them to {dataset_directory(run.dataset)} by `forgefield convert`"
            )
        return RunPaths(
            data or dataset_directory(run.dataset),
            model or model_directory(run.model),
            statistics or statistics_file(run.dataset, run.model),
            output or run_directory(run),
            given=frozenset({"data", "model", "statistics"}),
        )
    root = output or run_directory(run)
    given = {name for name, path in (("data", data), ("model", model), ("statistics", statistics)) if path}
    return RunPaths(
        data or root / "data",
        model or root / "foundation",
        statistics or root / "statistics.json",
        root,
        given=frozenset(given),
    )


def _require_test_data(config: Config, run: RunConfig) -> None:
    if "test" in run.evaluation.splits and config.datasets[run.dataset].split.test is None:
        raise UserError(
            f"test_path (datasets.{run.dataset}.split.test): missing; give the file of the test structures, or write "
            "evaluation.splits=[valid]"
        )


def _do(work: Work, config: Config, run: RunConfig, paths: "RunPaths", wait: bool, trains: bool = False) -> None:
    """Make the run's inputs, then do the work in one process or in several, which are started here if need be."""
    from forgefield import launch
    from forgefield.prepare import prepare_run, removed_on_error
    from forgefield.trainers.stopping import Stop

    stop, standing = Stop(launch.started()), partial(_standing, run, paths, trains)
    alone = _alone(paths.output, wait, trains)
    if launch.is_started(run):
        with launch.ended_together(), removed_on_error(paths.output):
            launch.join(run)
            # after JAX, which would take SIGTERM for a mere note
            with interruptible(standing, stop, speaks=launch.is_first(), patient=launch.is_child()):
                _do_together(work, config, run, paths, alone if launch.is_first() else nullcontext(), stop)
        return
    launch.require_here(run)
    with alone as lock, removed_on_error(paths.output), interruptible(standing, stop):
        prepare_run(config, run, paths)
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


def _do_together(
    work: Work, config: Config, run: RunConfig, paths: "RunPaths", alone: AbstractContextManager, stop: "Stop"
) -> None:
    """This process's share of the work; process 0 makes the inputs, unless they were there.

    The lock on the run is held by forgefield where that has started the processes, else by process 0.
    """
    from forgefield.prepare import prepare_run
    from forgefield.trainers.run import connect
    from forgefield.trainers.shared import require_shared

    processes = connect(run)
    require_shared(paths.output, processes)
    with alone:
        if processes.index == 0:
            prepare_run(config, run, paths)
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
        return "there is no checkpoint yet: the same command starts from the beginning"
    place = f"{Place.of(saved[0])} of {run.training.epochs} is the last in {saved[0].parent}"
    return f"{place}: the same command continues after it"


def _train(
    allowed: Collection[str], run: RunConfig, paths: "RunPaths", processes: "Processes | None", stop: "Stop"
) -> None:
    from forgefield.launch import end_all
    from forgefield.trainers.run import train_run

    inputs = paths.data, paths.model, paths.statistics
    train_run(run, *inputs, paths.output, processes, stop=stop, allowed=allowed, on_hang=end_all)


def _evaluate(run: RunConfig, paths: "RunPaths", processes: "Processes | None", stop: "Stop") -> None:
    from forgefield.evaluation.evaluate import evaluate_run
    from forgefield.evaluation.summary import print_summary
    from forgefield.models.inference import fastest_engine
    from forgefield.trainers.runtime import configure_jax

    if fastest_engine(run.backend) == "jax":
        configure_jax(precision="float64", devices=run.local_devices)
    evaluate_run(run, paths.data, paths.model, paths.statistics, paths.output, processes)
    if processes is None or processes.index == 0:
        print_summary(paths.output)
