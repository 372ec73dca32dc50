"""Options that several verbs share, and the configuration that they name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from forgefield.cli.completion import CONFIG, config_keys, dataset_names, model_names, run_names
from forgefield.config import Config, RunConfig, load_config
from forgefield.config.training import ALLOWED
from forgefield.errors import UserError

ConfigSource = Annotated[
    str | None,
    typer.Option("--config", "-c", help=f"The configuration: a YAML file, or YAML or JSON text; else {CONFIG}."),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RUN.yaml] [KEY=VALUE]...",
        help="A run file, and values that replace its own.",
        autocompletion=config_keys,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Replace one value, as in training.lr=1e-3.", autocompletion=config_keys
    ),
]
DatasetName = Annotated[
    str | None,
    typer.Option("--dataset", help="A name under `datasets`; else the one configured.", autocompletion=dataset_names),
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", help="A name under `models`; else the one configured.", autocompletion=model_names),
]
RunName = Annotated[
    str | None,
    typer.Option("--run", help="The run's name; needed where several are configured.", autocompletion=run_names),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; else its place under results/.")]
Data = Annotated[Path | None, typer.Option("--data", help="Directory of the converted dataset.")]
Model = Annotated[
    Path | None,
    typer.Option("--model", help="Directory of the imported model, of the run's architecture."),
]
ZeroShot = Annotated[
    Path | None,
    typer.Option(
        "--model",
        help="Directory of the model that training started from, reported as zero-shot; the trained model is the run's "
        "own, in its directory under model/.",
    ),
]
Statistics = Annotated[Path | None, typer.Option("--statistics", help="The JSON file of the statistics.")]
Scratch = Annotated[
    Path | None, typer.Option("--scratch", help="Directory of a run from scratch on the same data, to show beside.")
]
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait while another command works on the run, where it would else be refused.")
]
AllowChanged = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY",
        envvar=ALLOWED,
        help="A key that may differ from when the training began; can be repeated.",
    ),
]


def load(config: str | None, overrides: Sequence[str] | None) -> Config:
    """The configuration that ``--config`` names, with the changes of ``--set``."""
    return load_config(config or CONFIG, overrides or ())


def load_run(
    words: Sequence[str] | None, config: str | None, name: str | None, overrides: Sequence[str] | None
) -> tuple[Config, RunConfig]:
    """The configuration, by ``--config`` or as the first of ``words``, and its run."""
    words = list(words or ())
    file = Path(words.pop(0)) if words and "=" not in words[0] else None
    if file and config:
        raise UserError(f"{file} and --config {config} are both given; remove one")
    loaded = load_config(file or config or CONFIG, [*(overrides or ()), *words])
    if name is None and len(loaded.run_names) > 1:
        raise UserError(f"several runs are configured; give --run with one of: {', '.join(loaded.run_names)}")
    return loaded, loaded.run(name or loaded.run_names[0])
