"""The verb `init`: a run file for some data and a model."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from forgefield.errors import UserError
from forgefield.files import atomic_file


def init(
    data: Annotated[list[str], typer.Argument(help="Files, globs or directories of reference data.")],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The model to fine-tune: a directory of forgefield or FlashCart, a URL, or a `.model` file, which you "
            "trust by naming it. Not given: training from scratch.",
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write; else DATA.yaml.")] = None,
) -> None:
    """Write the run file that trains on a file of reference data, with all that can be found out."""
    from forgefield.data.inspection import inspect_files
    from forgefield.data.sources import find_files
    from forgefield.prepare.run_file import initial_run

    run = initial_run(data, inspect_files(find_files(data)), model)
    path = output or Path(f"{run.name}.yaml")
    if path.exists():
        raise UserError(f"{path}: is there already; remove it, or give another --output")
    command = shlex.join(["forgefield", "init", *data, *(["--model", model] if model else [])])
    with atomic_file(path) as temporary:
        temporary.write_text(run.text(path, command), encoding="utf-8")
    print(path.read_text(encoding="utf-8"), end="")
