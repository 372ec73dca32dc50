"""The structures of files of any format, whatever labels there are."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from forgefield.data.checks import check_structure
from forgefield.data.sources.archives import plain_files
from forgefield.data.sources.formats import Format, find_format, named_as, read_frames
from forgefield.data.sources.frames import ReadOptions
from forgefield.data.structures import Structure
from forgefield.errors import UserError, named
from forgefield.units import LENGTH_UNITS, unit_name

SAVE_ANOTHER = "save it as extended XYZ (.extxyz), or in another format that ASE recognizes by itself, such as .traj"


def read_unlabelled(paths: Sequence[Path], unit: str | None = None) -> Iterator[tuple[Path, Structure]]:
    """Each file's structures in order, in Å, with their file; ``source_index`` counts through all files.

    Args:
        paths: files of any format that converts.
        unit: of lengths; None is what a file or its format states.

    Raises:
        UserError: a file cannot be read, is without a unit, or a structure cannot be.
    """
    index = 0
    for path in paths:
        for name, plain in plain_files(path):
            options = ReadOptions(remedy=SAVE_ANOTHER)
            with named_as(plain, name, options):
                form = find_format(plain, options=options)
                factor = LENGTH_UNITS[_unit(plain, form, unit, options)]
            for number, frame in enumerate(read_frames(name, plain, form, options)):
                structure = Structure(
                    numbers=np.asarray(frame.numbers, np.int64),
                    positions=np.asarray(frame.positions, np.float64) * factor,
                    cell=np.asarray(frame.cell, np.float64) * factor,
                    pbc=np.asarray(frame.pbc, bool),
                    source_index=index,
                )
                check_structure(structure, f"{name}, frame {number}")
                yield path, structure
                index += 1


def _unit(path: Path, form: Format, given: str | None, options: ReadOptions) -> str:
    stated = form.stated(path, options).get("length")
    with named(path):
        found = {unit_name("length", word) for word in (given, stated) if word is not None}
    if len(found) > 1:
        raise UserError(f"{path}: lengths in the file are in {stated}, but the unit given is {given}; correct one")
    if not found and not form.assumed:
        raise UserError(
            f"{path}: an {form.name} file without the unit of its lengths; give it, such as --length-unit angstrom"
        )
    return found.pop() if found else "angstrom"
