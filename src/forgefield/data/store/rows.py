"""Reading chosen rows of a file's datasets, and counting what was read.

Datasets that lie in one piece, as a store's do, are read through a memory map of the file, which takes a fraction of
the time of HDF5's own reading. All others, such as those of a store that was compressed afterwards, are read by HDF5.
"""

import mmap
from collections.abc import Iterator

import h5py
import numpy as np

from forgefield.data.store.packed import FIRST, PACKED, PER_ATOM, holder, shape_of, width_for

Column = np.ndarray | h5py.Dataset


class RowReader:
    """Rows of the datasets ``keys`` at the root of a file open for reading, ``n_atoms`` among them.

    Attributes:
        bytes_read: bytes of all rows read so far; where a block of rows is read to pick some, of the whole block.

    Raises:
        OSError: the file is shorter than its datasets.
    """

    def __init__(self, file: h5py.File, keys: list[str]) -> None:
        self.bytes_read = 0
        content, packed = _mapped(file), PER_ATOM if PACKED in file else ()
        self._columns: dict[str, Column] = {key: _column(file[key], content) for key in keys if key not in packed}
        self._packed: dict[str, Column] = {key: _column(holder(file, key), content) for key in keys if key in packed}
        self._first_atom = _column(file[PACKED][FIRST], content) if packed else None
        self._max_atoms = shape_of(file)[1]

    def read(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Every column's values (b, ...), as stored, at the row numbers (b,) from 0, in any order.

        Of a packed store, those of atoms are padded to the largest of these structures or a little more.
        """
        values = {key: self._read(column, rows) for key, column in self._columns.items()}
        return values | self._read_packed(rows, values["n_atoms"]) if self._packed else values

    def blocks(self, key: str, block_bytes: int = 2**20) -> Iterator[np.ndarray]:
        """All values of a column, without padding where it is packed, in blocks."""
        column = self._packed[key] if key in self._packed else self._columns[key]
        step = max(1, block_bytes * len(column) // max(1, column.nbytes))
        for start in range(0, len(column), step):
            yield self._counted(column[start : start + step])

    def _read(self, column: Column, rows: np.ndarray) -> np.ndarray:
        if isinstance(column, np.ndarray):
            return self._counted(column.take(rows, axis=0))
        # HDF5 wants rows that ascend, and reads those that lie close together faster as one block
        if len(rows) == 0:
            return column[:0]
        unique, inverse = np.unique(rows, return_inverse=True)
        first, last = unique[0], unique[-1] + 1
        if last - first <= 4 * len(unique):
            return self._counted(column[first:last])[rows - first]
        return self._counted(column[unique])[inverse]

    def _read_packed(self, rows: np.ndarray, n_atoms: np.ndarray) -> dict[str, np.ndarray]:
        # whatever damage has made of these numbers, some row is read, and its checksum tells
        sizes = np.clip(n_atoms, 0, self._max_atoms)
        first = np.clip(self._read(self._first_atom, rows), 0, len(self._packed["species"]) - sizes)
        found, width, n_atoms = {}, width_for(sizes, self._max_atoms), int(sizes.sum())
        for key, column in self._packed.items():
            found[key] = np.zeros((len(rows), width, *column.shape[1:]), column.dtype)
            _copy_stretches(column, first, sizes, found[key])
            self.bytes_read += n_atoms * column.nbytes // max(1, len(column))
        return found

    def _counted(self, values: np.ndarray) -> np.ndarray:
        self.bytes_read += values.nbytes
        return values


def _copy_stretches(column: Column, first: np.ndarray, sizes: np.ndarray, rows: np.ndarray) -> None:
    """Put so many values of a column, from each first one on, at the beginning of each row (b, width, ...)."""
    if isinstance(column, np.ndarray) and rows.size:  # bytes are copied in two thirds of the time of arrays
        source, target, size = memoryview(column).cast("B"), memoryview(rows).cast("B"), rows[0, 0].nbytes
        starts, places = (size * first).tolist(), (size * rows.shape[1] * np.arange(len(rows))).tolist()
        for start, place, length in zip(starts, places, (size * sizes).tolist(), strict=True):
            target[place : place + length] = source[start : start + length]
    else:
        for row, start, size in zip(rows, first.tolist(), sizes.tolist(), strict=True):
            row[:size] = column[start : start + size]


def _mapped(file: h5py.File) -> mmap.mmap | None:
    """The file's bytes; None where HDF5 may hold other ones, or they are in no file."""
    if file.driver != "sec2" or file.mode != "r":
        return None
    return mmap.mmap(file.id.get_vfd_handle(), 0, access=mmap.ACCESS_READ)


def _column(dataset: h5py.Dataset, content: mmap.mmap | None) -> Column:
    start = dataset.id.get_offset()
    if content is None or start is None:
        return dataset
    if start + dataset.nbytes > len(content):
        raise OSError("the file is shorter than its datasets")
    column = np.ndarray(dataset.shape, dataset.dtype, content, start)
    # to take rows of numbers at odd places, NumPy would copy all of them first
    return column if column.flags.aligned else dataset
