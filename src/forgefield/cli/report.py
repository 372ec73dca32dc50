"""The verb `report`: one page that compares runs."""

from pathlib import Path
from typing import Annotated

import typer

from forgefield.cli.paths import RESULTS
from forgefield.errors import UserError

OUTPUT = RESULTS / "report.html"


def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Directories of runs; else all evaluated ones in results/runs."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = OUTPUT,
) -> None:
    """Write one page, in one file, that compares runs: errors, plots, settings, and which structure a point is."""
    try:
        from forgefield.report import Faults, read_runs, write_report
    except ModuleNotFoundError as error:
        raise UserError(
            f"the report needs {error.name}, which is not installed; pip install 'forgefield[report]'"
        ) from None
    found = sorted(path.parent for path in (RESULTS / "runs").glob("*/metrics.json"))
    # of all runs, those that are at fault must not keep the others from being compared
    faults = Faults(tolerated=not runs)
    n = write_report(read_runs(runs or found, faults), output, faults)
    print(f"{output}: {n} run{'s' * (n != 1)}, {output.stat().st_size / 1e6:.1f} MB; open it in a browser")
