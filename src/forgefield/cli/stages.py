"""One verb per stage of the workflow: read the configuration, make one library call.

The library is imported inside the functions, so that ``--help`` loads no engine.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from forgefield.cli.paths import dataset_directory, model_directory, run_directory, statistics_file
from forgefield.config import RunConfig, load_config
from forgefield.config.messages import did_you_mean
from forgefield.errors import UserError
from forgefield.files import write_json

CONFIG = "config/config.yaml"
Entry = TypeVar("Entry")

ConfigSource = Annotated[
    str, typer.Option("--config", "-c", help="The configuration: a YAML file, or YAML or JSON text.")
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replace one value, as in training.lr=1e-3.")
]
DatasetName = Annotated[str | None, typer.Option("--dataset", help="A name under `datasets`; else the one configured.")]
ModelName = Annotated[str | None, typer.Option("--model", help="A name under `models`; else the one configured.")]
RunName = Annotated[str | None, typer.Option("--run", help="The run's name; needed where several are configured.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; else its place under results/.")]
Data = Annotated[Path | None, typer.Option("--data", help="Directory of the converted dataset.")]
Model = Annotated[Path | None, typer.Option("--model", help="Directory of the imported model.")]
Statistics = Annotated[Path | None, typer.Option("--statistics", help="The JSON file of the statistics.")]


def convert(
    config: ConfigSource = CONFIG, dataset: DatasetName = None, output: Output = None, overrides: Overrides = None
) -> None:
    """Convert a dataset's reference files to HDF5 with units, and split it into train, valid and test."""
    from forgefield.data.convert import convert_dataset

    settings = load_config(config, overrides or ())
    name = dataset or _the_configured("dataset", settings.dataset)
    directory = output or dataset_directory(name)
    report = convert_dataset(name, _entry("datasets", settings.datasets, name), directory)
    parts = ", ".join(f"{report['split'][part]['structures']} {part}" for part in ("train", "valid", "test"))
    frames = report["frames"]
    print(
        f"{directory}: {parts}; of {frames['read']} frames {frames['rejected']} rejected, {frames['in_no_part']} unused"
    )


def import_model(
    config: ConfigSource = CONFIG, model: ModelName = None, output: Output = None, overrides: Overrides = None
) -> None:
    """Bring a foundation model into forgefield's format and check it, or draw random weights."""
    from forgefield.models.foundation import import_model

    settings = load_config(config, overrides or ())
    name = model or _the_configured("model", settings.model)
    entry = _entry("models", settings.models, name)
    print(f"importing model {name} and checking it", flush=True)
    import_model(name, entry, output or model_directory(name))


def statistics(
    config: ConfigSource = CONFIG,
    run: RunName = None,
    data: Data = None,
    model: Model = None,
    output: Output = None,
    overrides: Overrides = None,
) -> None:
    """Fit energy shifts to the training set and describe it as the model will see it."""
    from forgefield.statistics import compute_statistics
    from forgefield.trainers.runtime import configure_jax

    settings = _run(config, run, overrides)
    configure_jax(precision="float64")
    content = compute_statistics(
        (data or dataset_directory(settings.dataset)) / "train.h5",
        model or model_directory(settings.model),
        settings.statistics,
    )
    write_json(output or statistics_file(settings.dataset, settings.model), content)


def train(
    config: ConfigSource = CONFIG,
    run: RunName = None,
    data: Data = None,
    model: Model = None,
    statistics: Statistics = None,
    output: Output = None,
    overrides: Overrides = None,
) -> None:
    """Fine-tune, or train from scratch; continues from the last checkpoint where there is one."""
    from forgefield import launch

    settings = _run(config, run, overrides)
    paths = (
        data or dataset_directory(settings.dataset),
        model or model_directory(settings.model),
        statistics or statistics_file(settings.dataset, settings.model),
        output or run_directory(settings.name),
    )
    if launch.is_started(settings):
        with launch.ended_together():
            launch.join(settings)
            _train(settings, *paths)
    elif launch.process_count(settings) > 1:
        launch.start(settings)
    else:
        _train(settings, *paths)


def _train(settings: RunConfig, *paths: Path) -> None:
    from forgefield.trainers.run import train_run

    train_run(settings, *paths)


def evaluate(
    config: ConfigSource = CONFIG,
    run: RunName = None,
    data: Data = None,
    model: Model = None,
    statistics: Statistics = None,
    output: Output = None,
    overrides: Overrides = None,
) -> None:
    """Compare a run's model with the reference, beside the model it started from."""
    from forgefield.evaluation.evaluate import evaluate_run
    from forgefield.evaluation.summary import print_summary
    from forgefield.trainers.runtime import configure_jax

    settings = _run(config, run, overrides)
    configure_jax(precision="float64")
    directory = output or run_directory(settings.name)
    evaluate_run(
        settings,
        data or dataset_directory(settings.dataset),
        model or model_directory(settings.model),
        statistics or statistics_file(settings.dataset, settings.model),
        directory,
    )
    print_summary(directory)


def plot(
    config: ConfigSource = CONFIG, run: RunName = None, output: Output = None, overrides: Overrides = None
) -> None:
    """Draw a run's parity plots as PNG and SVG."""
    from forgefield.evaluation.plots import plot_run

    settings = _run(config, run, overrides)
    for path in plot_run(output or run_directory(settings.name), settings.plots):
        print(path)


def _the_configured(key: str, name: str | None) -> str:
    if name is None:
        raise UserError(f"the configuration names no {key}; add `{key}: NAME`, or give --{key}")
    return name


def _entry(kind: str, entries: Mapping[str, Entry], name: str) -> Entry:
    if name not in entries:
        raise UserError(f"{kind} has no entry {name!r}{did_you_mean(name, entries)}")
    return entries[name]


def _run(config: str, name: str | None, overrides: list[str] | None) -> RunConfig:
    settings = load_config(config, overrides or ())
    if name is None and len(settings.run_names) > 1:
        raise UserError(f"several runs are configured; give --run with one of: {', '.join(settings.run_names)}")
    return settings.run(name or settings.run_names[0])
