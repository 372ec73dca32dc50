"""The verbs about one run: train it, evaluate it, plot it.

The library is imported inside the functions, so that ``--help`` loads no engine.
"""

import sys
from collections.abc import Collection
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forgefield.cli.options import (
    AllowChanged,
    ConfigSource,
    Data,
    Model,
    Output,
    Overrides,
    RunName,
    Scratch,
    Statistics,
    Wait,
    Words,
    ZeroShot,
    load_run,
)
from forgefield.cli.output import AsJson, stdout_to_stderr
from forgefield.cli.paths import dataset_directory, model_directory, run_directory, statistics_file
from forgefield.cli.work import do
from forgefield.config import Config, RunConfig
from forgefield.errors import UserError

if TYPE_CHECKING:
    from forgefield.data.processes import Processes
    from forgefield.prepare import RunPaths
    from forgefield.trainers.stopping import Stop


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
    do(train_it, whole, settings, _paths(settings, data, model, statistics, output), wait, trains=True)


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
        do(_evaluate, whole, settings, paths, wait)
    if as_json and is_first():
        print((paths.output / "metrics.json").read_text(encoding="utf-8"), end="")


def plot(
    words: Words = None,
    config: ConfigSource = None,
    run: RunName = None,
    data: Data = None,
    output: Output = None,
    overrides: Overrides = None,
    scratch: Scratch = None,
) -> None:
    """Draw a run's parity plots, errors, learning curve and data as PNG and SVG."""
    from forgefield.evaluation.plots import plot_run

    _, settings = load_run(words, config, run, overrides)
    root = output or run_directory(settings)
    usual = dataset_directory(settings.dataset) if settings.output_path is None else root / "data"
    data = data or (usual if usual.exists() else None)
    for path in plot_run(root, settings.plots, data, scratch):
        print(path)
    if data is None:
        print(f"{usual}: not there, so no data_overview; give --data", file=sys.stderr)


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
