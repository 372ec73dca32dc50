"""One verb for each stage before training: read the configuration, make one library call.

The library is imported inside the functions, so that ``--help`` loads no engine.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from forgefield.cli.options import (
    ConfigSource,
    Data,
    DatasetName,
    Model,
    ModelName,
    Output,
    Overrides,
    RunName,
    load,
    load_run,
)
from forgefield.cli.paths import dataset_directory, model_directory, statistics_file
from forgefield.config import RunConfig
from forgefield.config.messages import did_you_mean
from forgefield.errors import UserError
from forgefield.files import write_json

if TYPE_CHECKING:
    from forgefield.data.processes import Processes

Entry = TypeVar("Entry")


def convert(
    config: ConfigSource = None,
    dataset: DatasetName = None,
    output: Output = None,
    overrides: Overrides = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes that convert large files; else one per core.")
    ] = None,
) -> None:
    """Convert a dataset's reference files to HDF5 with units, and split it into train, valid and test."""
    from forgefield.data.convert import convert_dataset, in_one_line
    from forgefield.data.sources.workers import available_cores

    settings = load(config, overrides)
    name = dataset or _the_configured("dataset", settings.dataset)
    entry = _entry("datasets", settings.datasets, name)
    if entry.split.test is None:
        raise UserError(f"datasets.{name}.split.test: missing; give test structures, which `forgefield evaluate` needs")
    directory = output or dataset_directory(name)
    report = convert_dataset(name, entry, directory, jobs=jobs or available_cores())
    print(in_one_line(report, directory))


def import_model(
    config: ConfigSource = None, model: ModelName = None, output: Output = None, overrides: Overrides = None
) -> None:
    """Bring a foundation model into forgefield's format and check it, or draw random weights."""
    from forgefield.models.foundation import import_model

    settings = load(config, overrides)
    name = model or _the_configured("model", settings.model)
    entry = _entry("models", settings.models, name)
    print(f"importing model {name} and checking it", flush=True)
    import_model(name, entry, output or model_directory(name))


def statistics(
    config: ConfigSource = None,
    run: RunName = None,
    data: Data = None,
    model: Model = None,
    output: Output = None,
    overrides: Overrides = None,
) -> None:
    """Fit energy shifts to the training set and describe it as the model will see it.

    Processes that `mpirun` or `srun` has started for the run's devices share the work; the result stays the same.
    """
    from forgefield import launch
    from forgefield.statistics import compute_statistics, log_lines

    _, settings = load_run((), config, run, overrides)
    with launch.ended_together() if launch.is_started(settings) else nullcontext():
        processes = _connected(settings)
        from forgefield.trainers.runtime import configure_jax

        configure_jax(precision="float64")
        content = compute_statistics(
            (data or dataset_directory(settings.dataset)) / "train.h5",
            model or model_directory(settings.model),
            settings.statistics,
            processes=processes,
        )
    if processes is None or processes.index == 0:
        write_json(output or statistics_file(settings.dataset, settings.model), content)
        for line in log_lines(content):
            print(line)


def _connected(settings: RunConfig) -> "Processes | None":
    """The processes that were started together, of which this is one; None for one alone."""
    from forgefield import launch

    if not launch.is_started(settings):
        return None
    launch.join(settings)  # before JAX is loaded
    from forgefield.trainers.run import connect

    return connect(settings)


def _the_configured(key: str, name: str | None) -> str:
    if name is None:
        raise UserError(f"the configuration names no {key}; add `{key}: NAME`, or give --{key}")
    return name


def _entry(kind: str, entries: Mapping[str, Entry], name: str) -> Entry:
    if name not in entries:
        raise UserError(f"{kind} has no entry {name!r}{did_you_mean(name, entries)}")
    return entries[name]
