"""The `forgefield` program: its verbs in the order in which a user meets them."""

from collections.abc import Callable

import typer

from forgefield import __version__
from forgefield.cli import stages, use
from forgefield.cli.export import export
from forgefield.errors import reported_errors

app = typer.Typer(
    name="forgefield",
    help="Fine-tune machine-learned interatomic potentials on your own reference data.",
    epilog="`snakemake` runs all stages in order, each only when something it depends on changed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

STAGES = "Stages, in order"
USE = "Use"
for verb, function, panel in [
    ("convert", stages.convert, STAGES),
    ("import-model", stages.import_model, STAGES),
    ("statistics", stages.statistics, STAGES),
    ("train", stages.train, STAGES),
    ("evaluate", stages.evaluate, STAGES),
    ("plot", stages.plot, STAGES),
    ("predict", use.predict, USE),
    ("export", export, USE),
    ("doctor", use.doctor, USE),
]:
    app.command(verb, rich_help_panel=panel)(function)
app.command("test", hidden=True, help="The same as evaluate.")(stages.evaluate)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"forgefield {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main() -> None:
    """The entry point ``forgefield``; errors end with one line and exit code 2 or 3."""
    with reported_errors():
        app()


def run(function: Callable[..., None]) -> None:
    """Run one verb as a program of its own, which is what the files in scripts/ do."""
    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    program.command()(function)
    with reported_errors():
        program()
