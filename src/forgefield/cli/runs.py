"""The verbs about one run: train it, evaluate it, plot it.

The library is imported inside the functions, so that ``--help`` loads no engine.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forgefield.cli.interrupts import interruptible
from forgefield.cli.options import (
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
from forgefield.cli.paths import dataset_directory, model_directory, run_directory, statistics_file
from forgefield.config import Config, RunConfig
from forgefield.errors import UserError

if TYPE_CHECKING:
    from forgefield.data.processes import Processes
    from forgefield.prepare import RunPaths

Work = Callable[[RunConfig, "RunPaths", "Processes | None"], None]


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
) -> None:
    """Fine-tune, or train from scratch; continues from the last checkpoint where there is one."""
    whole, settings = load_run(words, config, run, overrides)
    _do(_train, whole, settings, _paths(settings, data, model, statistics, output), wait)


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
) -> None:
    """Compare a run's model with the reference, beside the model it started from."""
    whole, settings = load_run(words, config, run, overrides)
    if data is None:
        _require_test_data(whole, settings)
    _do(_evaluate, whole, settings, _paths(settings, data, model, statistics, output), wait)


def plot(
    words: Words = None,
    config: ConfigSource = None,
    run: RunName = None,
    output: Output = None,
    overrides: Overrides = None,
) -> None:
    """Draw a run's parity plots as PNG and SVG."""
    from forgefield.evaluation.plots import plot_run

    _, settings = load_run(words, config, run, overrides)
    for path in plot_run(output or run_directory(settings), settings.plots):
        print(path)


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


def _do(work: Work, config: Config, run: RunConfig, paths: "RunPaths", wait: bool) -> None:
    """Make the run's inputs, then do the work in one process or in several, which are started here if need be."""
    from forgefield import launch
    from forgefield.prepare import only_one, prepare_run, removed_on_error

    if launch.is_started(run):
        with launch.ended_together(), removed_on_error(paths.output):
            launch.join(run)
            # after JAX, which would take SIGTERM for a mere note
            with interruptible(partial(_standing, work, run, paths), speaks=launch.is_first()):
                _do_together(work, config, run, paths, wait)
        return
    launch.require_here(run)
    standing = partial(_standing, work, run, paths)
    with (
        only_one(paths.output, wait=wait) as lock,
        removed_on_error(paths.output),
        _noting(work, paths),
        interruptible(standing, speaks=True),
    ):
        prepare_run(config, run, paths)
        if launch.process_count(run) > 1:
            launch.start(run, [lock])
        else:
            work(run, paths, None)


def _do_together(work: Work, config: Config, run: RunConfig, paths: "RunPaths", wait: bool) -> None:
    """This process's share of the work; process 0 makes the inputs, unless they were there.

    The lock on the run is held by forgefield where that has started the processes, else by process 0.
    """
    from forgefield.launch import is_first
    from forgefield.prepare import only_one, prepare_run
    from forgefield.trainers.run import connect
    from forgefield.trainers.shared import require_shared

    processes = connect(run)
    require_shared(paths.output, processes)
    with only_one(paths.output, wait=wait) if is_first() else nullcontext(), _noting(work, paths):
        if processes.index == 0:
            prepare_run(config, run, paths)
        processes.broadcast(None)  # the others wait for it
        work(run, paths, processes)


def _noting(work: Work, paths: "RunPaths") -> AbstractContextManager[None]:
    """Leaves the error of a training in its directory, for `forgefield runs`."""
    from forgefield.prepare.standing import noted_error

    return noted_error(paths.output) if work is _train else nullcontext()


def _standing(work: Work, run: RunConfig, paths: "RunPaths") -> str:
    """What is left of a run that is stopped now, and how to go on."""
    from forgefield.trainers.checkpoints import saved_checkpoints

    saved = saved_checkpoints(paths.output / "checkpoints")
    if work is not _train:
        return "the same command starts again"
    if not saved:
        return "there is no checkpoint yet: the same command starts from the beginning"
    epoch = int(saved[0].name.removeprefix("epoch_"))
    place = f"epoch {epoch} of {run.training.epochs} is the last in {saved[0].parent}"
    return f"{place}: the same command continues after it"


def _train(run: RunConfig, paths: "RunPaths", processes: "Processes | None") -> None:
    from forgefield.trainers.run import train_run

    train_run(run, paths.data, paths.model, paths.statistics, paths.output, processes)


def _evaluate(run: RunConfig, paths: "RunPaths", processes: "Processes | None") -> None:
    from forgefield.evaluation.evaluate import evaluate_run
    from forgefield.evaluation.summary import print_summary
    from forgefield.models.inference import fastest_engine
    from forgefield.trainers.runtime import configure_jax

    if fastest_engine(run.backend) == "jax":
        configure_jax(precision="float64")
    evaluate_run(run, paths.data, paths.model, paths.statistics, paths.output, processes)
    if processes is None or processes.index == 0:
        print_summary(paths.output)
