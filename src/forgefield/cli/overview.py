"""The verb `runs`: how the runs in a folder stand."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgefield.cli.output import AsJson
from forgefield.cli.paths import RESULTS

if TYPE_CHECKING:
    from forgefield.prepare.standing import Standing

STYLES = {"complete": "green", "running": "cyan", "stopped": "yellow", "failed": "red", "damaged": "red"}


def runs(
    folder: Annotated[Path, typer.Argument(help="Where the runs are, however deep.")] = RESULTS / "runs",
    as_json: AsJson = False,
) -> None:
    """List runs: complete, running, stopped, failed or damaged, how far they are, and their best score."""
    from forgefield.prepare.standing import find_runs

    found = find_runs(folder)
    if as_json:
        print(json.dumps([asdict(run) for run in found], indent=2, ensure_ascii=False))
    elif not found:
        print(f"{folder}: no runs")
    else:
        _print_table(folder, found)


def _print_table(folder: Path, found: "list[Standing]") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("run", "state", "epoch", "step", "best validation loss", "")
    for run in found:
        table.add_row(
            escape(str(Path(run.run).relative_to(folder))),
            f"[{STYLES[run.state]}]{run.state}",
            _epochs(run),
            str(run.step),
            "" if run.best_loss is None else f"{run.best_loss:.4g} (epoch {run.best_epoch})",
            escape(run.where),
        )
    Console().print(table)


def _epochs(run: "Standing") -> str:
    if run.epochs is not None and run.epoch > run.epochs:
        return f"{run.epoch} ({run.epochs} asked for)"
    return f"{run.epoch} of {run.epochs or '?'}"
