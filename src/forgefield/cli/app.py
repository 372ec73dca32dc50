"""The `forgefield` program: its verbs in the order in which a user meets them."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from forgefield import __version__
from forgefield.cli import overview, runs, stages, use
from forgefield.cli.examples import examples_of, first_steps
from forgefield.cli.export import export
from forgefield.cli.init import init
from forgefield.cli.inspect import inspect
from forgefield.cli.report import report
from forgefield.cli.validate import validate
from forgefield.errors import UserError, reported_errors

# typer has its own copy of click's exceptions, or click's own, by its version
UsageError = typer.BadParameter.__base__

app = typer.Typer(
    name="forgefield",
    help="Fine-tune machine-learned interatomic potentials on your own reference data.",
    epilog=first_steps(),
    pretty_exceptions_enable=False,
)

START = "Start"
STAGES = "Stages, in order"
RESULTS = "Look at results"
USE = "Use a model"
for verb, function, panel in [
    ("inspect", inspect, START),
    ("init", init, START),
    ("doctor", use.doctor, START),
    ("convert", stages.convert, STAGES),
    ("import-model", stages.import_model, STAGES),
    ("statistics", stages.statistics, STAGES),
    ("train", runs.train, STAGES),
    ("evaluate", runs.evaluate, STAGES),
    ("test", runs.evaluate, STAGES),
    ("plot", runs.plot, STAGES),
    ("runs", overview.runs, RESULTS),
    ("report", report, RESULTS),
    ("validate", validate, RESULTS),
    ("predict", use.predict, USE),
    ("export", export, USE),
]:
    app.command(verb, rich_help_panel=panel, epilog=examples_of(verb))(function)


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
    _execute(app, sys.argv[1:] or ["--help"])


def run(function: Callable[..., None]) -> None:
    """Run one verb as a program of its own, which is what the files in scripts/ do."""
    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    program.command()(function)
    _execute(program, sys.argv[1:])


def _execute(program: typer.Typer, arguments: Sequence[str]) -> None:
    with reported_errors():
        try:
            code = program(arguments, standalone_mode=False)
        except UsageError as error:
            verbs = {command.name for command in program.registered_commands}
            words = [Path(sys.argv[0]).name, *(word for word in arguments[:1] if word in verbs)]
            raise UserError(_usage(error, " ".join(words))) from None
    raise SystemExit(code)


def _usage(error: UsageError, command: str) -> str:
    """A wrong command line in one line, where typer would draw a box."""
    text = error.format_message().rstrip(".")
    return f"{command}: {text[:1].lower()}{text[1:]}{' ' if text.endswith('?') else '; '}see `{command} --help`"
