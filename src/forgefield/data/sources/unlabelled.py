"""The structures of files of any format, whatever labels there are."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from forgefield.data.checks import check_structure
from forgefield.data.sources.ase_files import ase_format, read_ase
from forgefield.data.sources.frames import RawFrame
from forgefield.data.sources.npz import is_npz, read_npz, stated_units
from forgefield.data.structures import Structure
from forgefield.errors import UserError, named
from forgefield.units import LENGTH_UNITS, unit_name

SAVE_ANOTHER = "save it as extended XYZ (.extxyz), or in another format that ASE recognizes by itself, such as .traj"


def read_unlabelled(paths: Sequence[Path], unit: str | None = None) -> Iterator[tuple[Path, Structure]]:
    """Each file's structures in order, in Å, with their file; ``source_index`` counts through all files.

    Args:
        paths: npz files, or files in any format that ASE reads.
        unit: of lengths; None is what an npz file states, and Å in other files.

    Raises:
        UserError: a file cannot be read, an npz file is without a unit, or a structure cannot be.
    """
    index = 0
    for path in paths:
        factor = LENGTH_UNITS[_unit(path, unit)]
        for number, frame in enumerate(_frames(path)):
            structure = Structure(
                numbers=np.asarray(frame.numbers, np.int64),
                positions=np.asarray(frame.positions, np.float64) * factor,
                cell=np.asarray(frame.cell, np.float64) * factor,
                pbc=np.asarray(frame.pbc, bool),
                source_index=index,
            )
            check_structure(structure, f"{path}, frame {number}")
            yield path, structure
            index += 1


def _frames(path: Path) -> Iterator[RawFrame]:
    if is_npz(path):
        return read_npz(path, lambda key: False, SAVE_ANOTHER)
    return read_ase(path, ase_format(path, "auto", SAVE_ANOTHER), [], SAVE_ANOTHER)


def _unit(path: Path, given: str | None) -> str:
    stated = stated_units(path, SAVE_ANOTHER).get("length") if is_npz(path) else None
    with named(path):
        found = {unit_name("length", word) for word in (given, stated) if word is not None}
    if len(found) > 1:
        raise UserError(f"{path}: r_unit in the file is {stated}, but the unit given is {given}; correct one")
    if not found and is_npz(path):
        raise UserError(f"{path}: an npz file without the unit of its lengths; give it, such as --length-unit angstrom")
    return found.pop() if found else "angstrom"
