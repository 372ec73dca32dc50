"""Verbs for afterwards: predict with a trained model, and ask what this machine can run."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from forgefield.cli.output import AsJson


def predict(
    model: Annotated[Path, typer.Argument(help="A model's directory, such as results/runs/NAME/model.")],
    file: Annotated[Path, typer.Argument(help="Structures, in any format that `convert` reads.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The extended XYZ file to write.")],
    batch: Annotated[int, typer.Option(min=1, help="Structures per call of the model.")] = 32,
    precision: Annotated[
        str, typer.Option(metavar="float64|float32", help="Precision of the model's arithmetic.")
    ] = "float64",
    length_unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="Of lengths in the file; else what the file states, or Å.")
    ] = None,
) -> None:
    """Write energy (eV), forces (eV/Å) and, for periodic cells, stress (eV/Å³) of each structure of a file."""
    from forgefield.evaluation.predict import predict_file
    from forgefield.trainers.runtime import configure_jax

    configure_jax(precision=precision)
    n = predict_file(model, file, output, batch=batch, precision=precision, length_unit=length_unit)
    print(f"{output}: {n} structures, energies in eV, forces in eV/Å, stresses in eV/Å³")


def doctor(
    as_json: AsJson = False,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Check the Slurm cluster instead, and propose its keys.")
    ] = False,
) -> None:
    """Say what is installed here, and which engines and parallel methods can run."""
    from forgefield.doctor import RunningChecks, diagnose, examine, render, report

    found, section = examine() if slurm else (diagnose(RunningChecks()), None)
    if as_json:
        findings = [asdict(finding) for finding in found]
        content = findings if section is None else {"findings": findings, "slurm": section}
        print(json.dumps(content, indent=2, ensure_ascii=False))
        return
    report(found)
    if section is not None:
        print(f"For config.yaml, or a run of yours:\n\n{render(section)}")
