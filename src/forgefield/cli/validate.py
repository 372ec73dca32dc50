"""The verb `validate`: whether converted files are whole."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from forgefield.cli.output import AsJson
from forgefield.errors import UserError


def validate(
    files: Annotated[list[Path], typer.Argument(help="HDF5 files that `convert` made.")],
    as_json: AsJson = False,
) -> None:
    """Read converted files whole: lengths, types, units, masks, finite numbers and checksums; exit code 2 if wrong."""
    from forgefield.data.store.validation import validate_store

    reports: list[dict[str, Any]] = []
    for path in files:
        try:
            reports.append(validate_store(path))
        except UserError as error:
            reports.append({"path": str(path), "error": str(error)})
        if not as_json:
            _print(reports[-1])
    if as_json:
        print(json.dumps(reports, indent=2, ensure_ascii=False))
    if any("error" in report for report in reports):
        raise typer.Exit(UserError.exit_code)


def _print(report: dict[str, Any]) -> None:
    if "error" in report:
        print(f"error: {report['error']}", file=sys.stderr)
        return
    least, most = report["atoms"]["least"], report["atoms"]["most"]
    atoms = f"{least}" if least == most else f"{least} to {most}"
    labels = ", ".join(f"{n} with {label}" for label, n in report["labels"].items() if n)
    units = " and ".join(report["units"][kind] for kind in ("energy", "length"))
    what = f"{report['structures']} structures of {atoms} atoms ({' '.join(report['elements'])})"
    print(f"{report['path']}: whole; {what}, {labels}, in {units}")
