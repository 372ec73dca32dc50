"""The verb `inspect`: what reference files hold, as tables and as the configuration that uses them."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgefield.cli.output import AsJson

if TYPE_CHECKING:
    from rich.table import Table

    from forgefield.data.inspection import Inspection

MOST_FILES = 10  # shown


def inspect(
    files: Annotated[list[str], typer.Argument(help="Files, globs or directories of reference data.")],
    frames: Annotated[int | None, typer.Option(min=1, help="Look at this many frames; else at all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what files hold, in which units it seems to be, and the configuration that uses them."""
    from forgefield.data.inspection import as_yaml, dataset_entry, inspect_files, problems
    from forgefield.data.sources import find_files

    found = inspect_files(find_files(files), frames)
    entry = dataset_entry(found, files)
    if as_json:
        print(json.dumps(asdict(found) | {"problems": problems(found), "entry": entry}, indent=2, ensure_ascii=False))
        return
    _print_tables(found, problems(found))
    print(as_yaml(entry, Path(files[0]).name.split(".")[0]), end="")


def _print_tables(found: "Inspection", problems: list[str]) -> None:
    from rich.console import Console

    console = Console()
    sections = {
        "Files": _files(found),
        "Content (in eV and Å by the units below)": _content(found),
        "Keys": [(k["key"], k["type"], " or ".join(k["shapes"]), f"{k['frames']} frames") for k in found.keys],
        "Units": [tuple(line.split(": ", 1)) for line in found.guess.evidence],
        "Warnings": [(line,) for line in found.warnings],
        "A conversion would stop": [(line,) for line in problems],
    }
    for title, rows in sections.items():
        if rows:
            console.print(_table(title, rows))


def _table(title: str, rows: list[tuple[str, ...]]) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False)
    for _ in max(rows, key=len):
        table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _files(found: "Inspection") -> list[tuple[str, ...]]:
    rows = [(file["path"], file["format"], f"{file['frames']} frames") for file in found.files[:MOST_FILES]]
    more = len(found.files) - MOST_FILES
    return [*rows, (f"and {more} more", "", "")] if more > 0 else rows


def _content(found: "Inspection") -> list[tuple[str, ...]]:
    sizes, frames = found.sizes, found.frames
    rejected = "".join(f", {n} left out ({reason})" for reason, n in frames["rejected"].items())
    more = "" if frames["all"] else ", and there are more"
    rows = [
        ("frames", f"{frames['usable']} usable{rejected}{more}"),
        ("atoms", _range(sizes["atoms"], "d")),
        ("elements", " ".join(sizes["elements"])),
        ("periodic", f"{sizes['periodic'] or 'no'} frames{_range(sizes['cell'], '.4g', ', cell vectors of ', ' Å')}"),
        ("shortest distance", _range(sizes["shortest_distance"], ".3f", "", " Å")),
        ("energy per atom", _range(sizes["energy_per_atom"], ".6g", "", " eV")),
    ]
    if sizes["force_rms"] is not None:
        rows.append(("forces", f"RMS {sizes['force_rms']:.4g}, largest {sizes['force_max']:.4g} eV/Å"))
    for label, entry in found.labels.items():
        others = f", or is it {' or '.join(entry['or'])}?" if entry["or"] else ""
        rows.append((label, f"key {entry['key']}, in {entry['frames']} of {frames['read']} frames{others}"))
    return [row for row in rows if row[1]]


def _range(both: list[Any] | None, form: str, before: str = "", after: str = "") -> str:
    if both is None:
        return ""
    least, most = (format(value, form) for value in both)
    return f"{before}{least if least == most else f'{least} to {most}'}{after}"
