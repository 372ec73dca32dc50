"""The verb that takes a trained model to other programs."""

from pathlib import Path
from typing import Annotated

import typer


def export(
    model: Annotated[Path, typer.Argument(help="A model's directory, such as results/runs/NAME/model.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, such as NAME.model.")],
    to: Annotated[str, typer.Option(metavar="FORMAT", help="`mace`: a model file of mace-torch.")] = "mace",
    dtype: Annotated[
        str | None, typer.Option(metavar="float64|float32", help="Precision of the file; else the model's own.")
    ] = None,
) -> None:
    """Write a model as the file of another program, for its ASE calculator or its LAMMPS interface."""
    from forgefield.models.export import export_model

    print(f"{output}: {export_model(model, output, to, dtype)}")
