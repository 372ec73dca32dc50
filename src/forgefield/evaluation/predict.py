"""A model's predictions for the structures of any file, as extended XYZ."""

from collections.abc import Iterator
from itertools import tee
from pathlib import Path

import ase.io
import numpy as np
from ase import Atoms
from ase.calculators.singlepoint import SinglePointCalculator
from ase.stress import full_3x3_to_voigt_6_stress

from forgefield.data.checks import check_structure
from forgefield.data.sources.ase_files import ase_format, read_ase
from forgefield.data.sources.files import find_files
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.files import atomic_file
from forgefield.models.inference import Prediction, check_elements, predict
from forgefield.models.potential import Potential, load_potential

SAVE_ANOTHER = "save it as extended XYZ (.extxyz), or in another format that ASE recognizes by itself, such as .traj"


def predict_file(
    model_dir: Path | str, source: Path | str, output: Path | str, *, batch: int = 32, precision: str = "float64"
) -> int:
    """Write each structure with its energy (eV), forces (eV/Å) and, where periodic, stress (eV/Å^3), in order.

    Args:
        model_dir: directory of a potential.
        source: file or glob, in any format that ASE reads, in Å.
        output: the extended XYZ file; it appears when all structures are done.
        batch: structures per call of the model.
        precision: ``float64`` or ``float32``.

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
    structures, ahead = tee(_structures(source, potential))
    predictions = predict(potential, ahead, batch=batch, precision=precision, virial=True)
    n = 0
    with atomic_file(output) as temporary, open(temporary, "w") as file:
        for structure, prediction in zip(structures, predictions, strict=True):
            n += 1
            ase.io.write(file, _atoms(structure, prediction), format="extxyz")
        if n == 0:
            raise UserError(f"{source}: no structures in it")
    return n


def _structures(source: Path, potential: Potential) -> Iterator[Structure]:
    frames = (
        (path, frame)
        for path in find_files(source)
        for frame in read_ase(path, ase_format(path, "auto", SAVE_ANOTHER), [], SAVE_ANOTHER)
    )
    for index, (path, frame) in enumerate(frames):
        structure = Structure(
            numbers=np.asarray(frame.numbers, np.int64),
            positions=np.asarray(frame.positions, np.float64),
            cell=np.asarray(frame.cell, np.float64),
            pbc=np.asarray(frame.pbc, bool),
            source_index=index,
        )
        check_structure(structure, f"{path}, frame {index}")
        try:
            check_elements(structure, potential)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
        yield structure


def _atoms(structure: Structure, prediction: Prediction) -> Atoms:
    atoms = Atoms(structure.numbers, structure.positions, cell=structure.cell, pbc=structure.pbc)
    results = {"energy": prediction.energy, "forces": prediction.forces}
    if prediction.stress is not None:
        results["stress"] = full_3x3_to_voigt_6_stress(prediction.stress)
    atoms.calc = SinglePointCalculator(atoms, **results)
    return atoms
