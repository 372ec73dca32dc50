"""The npz files of sGDML (R, z, E, F) and rMD17 (coords, nuclear_charges, energies, forces), row by row.

A molecule's atomic numbers are stored once. sGDML's optional ``r_unit`` and ``e_unit`` name the units, and its optional
``lattice`` holds the cell vectors as columns (http://quantum-machine.org/gdml/doc/datasets.html).
"""

import io
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from forgefield.data.sources.frames import RawFrame, ReadOptions
from forgefield.errors import UserError

POSITIONS = ("R", "coords", "positions", "coordinates")
NUMBERS = ("z", "nuclear_charges", "numbers", "atomic_numbers")
UNIT_KEYS = {"e_unit": "energy", "r_unit": "length"}
OBJECTS = "an array holds Python objects, which can run any code and are not read; save arrays of numbers"
BLOCK = 256  # frames read at a time


def is_npz(path: Path) -> bool:
    return path.suffix == ".npz"


def stated_units(path: Path, options: ReadOptions) -> dict[str, str]:
    """Kind of quantity -> the unit that a file states for it."""
    with _open(path, options.remedy) as archive:
        return {kind: _word(archive[key]) for key, kind in UNIT_KEYS.items() if key in archive.files}


def read_npz(path: Path, options: ReadOptions) -> Iterator[RawFrame]:
    """Stream the frames of one file; the arrays with one row for each frame go into ``RawFrame.values``.

    Raises:
        UserError: no npz file, damaged, an array is missing or does not fit the others, or holds Python objects.
    """
    with _open(path, options.remedy) as archive, ExitStack() as stack:
        positions, numbers = (_first(path, archive, names) for names in (POSITIONS, NUMBERS))
        z, cell = np.asarray(archive[numbers]), np.zeros((3, 3))
        if "lattice" in archive.files:
            cell = np.asarray(archive["lattice"], float).T
        rows = {key: stack.enter_context(_Rows(archive, key)) for key in archive.files if key != numbers}
        _check_types(path, {key: row for key, row in rows.items() if key == positions or options.is_label(key)})
        rows = {key: row for key, row in rows.items() if row.shape and row.dtype.kind in "fiub"}
        n_frames = _check_shapes(path, rows, z, positions, numbers, options.is_label)
        rows = {key: row for key, row in rows.items() if row.shape[0] == n_frames}
        for start in range(0, n_frames, BLOCK):
            block = {key: row.read(min(BLOCK, n_frames - start)) for key, row in rows.items()}
            for i, r in enumerate(block.pop(positions)):
                values = {key: values[i] for key, values in block.items()}
                yield RawFrame(z, r, cell, np.full(3, "lattice" in archive.files), values)


def _check_types(path: Path, labels: Mapping[str, "_Rows"]) -> None:
    for key, row in labels.items():
        if row.dtype.kind not in "fiub":
            what = "Python objects" if row.dtype.hasobject else f"{row.dtype} elements"
            raise UserError(f"{path}: {key} holds {what}, which are no numbers; save it as an array of floats")


def _check_shapes(
    path: Path, rows: dict[str, "_Rows"], z: np.ndarray, positions: str, numbers: str, is_label: Callable[[str], bool]
) -> int:
    """The number of frames."""
    shape = rows[positions].shape if positions in rows else ()
    if z.ndim != 1 or shape[1:] != (len(z), 3):
        raise UserError(
            f"{path}: {positions} has shape {shape} and {numbers} {z.shape}; expected (frames, atoms, 3) and (atoms,); "
            "repair the file"
        )
    for key, row in rows.items():
        if is_label(key) and row.shape[0] != shape[0]:
            raise UserError(f"{path}: {key} has {row.shape[0]} rows, but {positions} {shape[0]}; repair the file")
    return shape[0]


@contextmanager
def _open(path: Path, remedy: str) -> Iterator[np.lib.npyio.NpzFile]:
    try:
        with open(path, "rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("a single array; expected R, z, E and F")
            with archive:
                yield archive
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if "allow_pickle" in str(error):
            raise UserError(f"{path}: {OBJECTS}") from None
        raise UserError(f"{path}: not a readable npz file ({error}); copy it again or {remedy}") from None


def _first(path: Path, archive: np.lib.npyio.NpzFile, names: tuple[str, ...]) -> str:
    for name in names:
        if name in archive.files:
            return name
    raise UserError(f"{path}: no array named {' or '.join(names)}; the file has {', '.join(archive.files)}")


def _word(value: Any) -> str:
    word = np.asarray(value).item()
    return word.decode() if isinstance(word, bytes) else str(word)


class _Rows:
    """One array of an npz file, read in blocks of rows, so that memory does not grow with the file."""

    def __init__(self, archive: np.lib.npyio.NpzFile, key: str):
        self._stream = archive.zip.open(f"{key}.npy")
        version = np.lib.format.read_magic(self._stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, column_major, self.dtype = read_header(self._stream)
        if column_major and len(self.shape) > 1:  # rare, and has no rows to read one after the other
            self._stream = io.BytesIO(np.ascontiguousarray(archive[key]).tobytes())

    def read(self, n: int) -> np.ndarray:
        shape = (n, *self.shape[1:])
        content = self._stream.read(self.dtype.itemsize * math.prod(shape))
        return np.frombuffer(content, self.dtype).reshape(shape)

    def __enter__(self) -> "_Rows":
        return self

    def __exit__(self, *exception: object) -> None:
        self._stream.close()
