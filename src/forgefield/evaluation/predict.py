"""A model's predictions for the structures of any file, as extended XYZ."""

from collections.abc import Iterator
from itertools import tee
from pathlib import Path

import ase.io
from ase import Atoms
from ase.calculators.singlepoint import SinglePointCalculator
from ase.stress import full_3x3_to_voigt_6_stress

from forgefield.data.places import Places, placed
from forgefield.data.sources.files import find_files
from forgefield.data.sources.unlabelled import read_unlabelled
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.files import atomic_file
from forgefield.models.inference import Prediction, predict
from forgefield.models.potential import load_potential


def predict_file(
    model_dir: Path | str,
    source: Path | str,
    output: Path | str,
    *,
    batch: int = 32,
    precision: str = "float64",
    length_unit: str | None = None,
) -> int:
    """Write each structure with its energy (eV), forces (eV/Å) and, where periodic, stress (eV/Å^3), in order.

    Args:
        model_dir: directory of a potential.
        source: file or glob, an npz file or in any format that ASE reads.
        output: the extended XYZ file; it appears when all structures are done.
        batch: structures per call of the model.
        precision: ``float64`` or ``float32``.
        length_unit: of the file; None is what an npz file states, and Å in other files.

    Returns:
        The number of structures.

    Raises:
        UserError: the file is missing, unreadable or without structures, a structure has an element that the model
            does not know, or ``output`` is a directory or named as another format.
    """
    source, output = Path(source), Path(output)
    if output.is_dir():
        raise UserError(f"{output}: a directory; give the name of a file, such as {output / 'predicted.extxyz'}")
    if output.suffix not in (".extxyz", ".xyz"):
        raise UserError(f"{output}: predictions are written as extended XYZ; give a name that ends in .extxyz or .xyz")
    potential = load_potential(model_dir)
    files: list[tuple[str, int]] = []
    structures, ahead = tee(_structures(source, length_unit, files))
    predictions = predict(potential, ahead, batch=batch, precision=precision, wanted="virial")
    n = 0
    with atomic_file(output) as temporary, open(temporary, "w") as file, placed(Places(files)):
        for structure, prediction in zip(structures, predictions, strict=True):
            n += 1
            ase.io.write(file, _atoms(structure, prediction), format="extxyz")
        if n == 0:
            raise UserError(f"{source}: no structures in it")
    return n


def _structures(source: Path, length_unit: str | None, files: list[tuple[str, int]]) -> Iterator[Structure]:
    """The structures; appends to ``files`` where those of each begin."""
    for path, structure in read_unlabelled(find_files(source), length_unit):
        if not files or files[-1][0] != str(path):
            files.append((str(path), structure.source_index))
        yield structure


def _atoms(structure: Structure, prediction: Prediction) -> Atoms:
    atoms = Atoms(structure.numbers, structure.positions, cell=structure.cell, pbc=structure.pbc)
    results = {"energy": prediction.energy, "forces": prediction.forces}
    if prediction.stress is not None:
        results["stress"] = full_3x3_to_voigt_6_stress(prediction.stress)
    atoms.calc = SinglePointCalculator(atoms, **results)
    return atoms
