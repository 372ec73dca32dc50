"""Reading a store."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np

from forgefield.data.places import Places
from forgefield.data.store.assembly import to_structures
from forgefield.data.store.checksums import RowChecksums
from forgefield.data.store.layout import columns
from forgefield.data.store.opening import (
    AGAIN,
    DAMAGES,
    check_attributes,
    check_datasets,
    check_version,
    damaged,
    find_extra,
    open_file,
    read_units,
)
from forgefield.data.store.packed import PACKED, holder, shape_of
from forgefield.data.store.rows import RowReader
from forgefield.data.structures import Structure
from forgefield.data.targets import NO_TARGETS, Targets
from forgefield.errors import UserError
from forgefield.units import Units

UNUSED = "mask"  # n_atoms says the same


class Store:
    """A store opened for reading; use it as a context manager.

    Opening reads no rows, and :meth:`read` those it is asked for only.

    Args:
        file: a path, or an open ``h5py.File``, which stays open when the store is closed.
        targets: which datasets besides the store's own are read, into ``extra`` of structures.

    Attributes:
        path: the file.
        units: the units of the numbers in the file; :meth:`read` converts them to eV and Å.
        attributes: the root attributes, as text.
        max_atoms: A, the atoms of the largest structure.
        has_virial: whether the file holds virials.
        rows_read: rows that :meth:`read` has read so far, each as often as it was asked for.

    Raises:
        UserError: no such file, not a store, truncated, another format version, or datasets that do not fit together.
        OSError: the file may not be read.
    """

    def __init__(self, file: Path | str | h5py.File, targets: Targets = NO_TARGETS):
        self._is_own = not isinstance(file, h5py.File)
        self.path = Path(file) if self._is_own else Path(file.filename)
        self._file = open_file(self.path) if self._is_own else file
        self.rows_read = 0
        try:
            self._check(targets)
        except DAMAGES:
            self.close()
            raise damaged(self.path) from None
        except BaseException:
            self.close()
            raise

    def _check(self, targets: Targets) -> None:
        self.attributes = {key: _text(value) for key, value in self._file.attrs.items()}
        check_version(self.path, self.attributes)
        self.has_virial = "virial" in self._file
        check_datasets(self.path, self._file, self.has_virial)
        self.units = read_units(self.path, self.attributes)
        check_attributes(self.path, self.attributes)
        self._factors = self.units.factors(Units())  # to eV and Å
        self._length, self.max_atoms = shape_of(self._file)
        keys = [key for key in columns(self.max_atoms, self.has_virial) if key != UNUSED]
        self._own, self._extra = keys, find_extra(self.path, self._file, targets)
        self._reader: RowReader | None = RowReader(self._file, [*dict.fromkeys([*keys, *self._extra])])
        layout = columns(self.max_atoms, self.has_virial)
        types = {key: holder(self._file, key).dtype for key in keys if key != "checksum"}
        self._checksums = RowChecksums({key: (layout[key].tail, dtype) for key, dtype in types.items()})

    @property
    def bytes_read(self) -> int:
        """Bytes of all rows read so far, as they lie in the file; a block that HDF5 reads to pick rows counts whole."""
        return self._open_reader.bytes_read

    @cached_property
    def places(self) -> Places:
        """Where the structures' frames are in the files that the store was made from, as far as it tells."""
        if "source_first_frame" not in self.attributes:
            return Places(otherwise=f"{self.path}: ")
        paths, first = (json.loads(self.attributes[key]) for key in ("source", "source_first_frame"))
        return Places([*zip(paths, first, strict=True)])

    @property
    def source_hashes(self) -> dict[str, str]:
        """The files that the store was made from, and their sha256, as far as it tells."""
        if "source_first_frame" not in self.attributes:
            return {}
        return dict(zip(*(json.loads(self.attributes[key]) for key in ("source", "source_sha256")), strict=True))

    @cached_property
    def elements(self) -> tuple[int, ...]:
        """Atomic numbers that occur, in ascending order; the first use reads ``species`` of the whole file."""
        found = np.zeros(256, dtype=bool)
        for block in self._blocks("species"):
            found[block] = True
        return tuple(int(z) for z in np.flatnonzero(found) if z)

    @cached_property
    def n_atoms(self) -> np.ndarray:
        """(N,) atoms of each structure."""
        return np.concatenate(list(self._blocks("n_atoms")))

    @cached_property
    def in_source_order(self) -> np.ndarray:
        """(N,) row numbers in the order of the source; a packed file has sorted the structures by size."""
        if PACKED not in self._file:
            return np.arange(len(self))
        return np.argsort(np.concatenate(list(self._blocks("source_index"))), kind="stable")

    def digest(self) -> str:
        """The sha256 of what the rows hold, whatever files they came from; reads their checksums only."""
        found = hashlib.sha256(self.units.to_json().encode())
        for block in self._blocks("checksum"):
            found.update(block.tobytes())
        return found.hexdigest()

    def _blocks(self, key: str) -> Iterator[np.ndarray]:
        """A whole column in pieces."""
        reader = self._open_reader
        try:
            yield from reader.blocks(key)
        except DAMAGES:
            raise damaged(self.path) from None

    @property
    def _open_reader(self) -> RowReader:
        if self._reader is None:
            raise ValueError(f"{self.path}: the store is closed")
        return self._reader

    def __len__(self) -> int:
        return self._length

    def read(self, indices: Sequence[int] | np.ndarray | slice) -> list[Structure]:
        """The structures at ``indices``, in that order, in eV and Å; a label whose weight is 0 is None.

        Raises:
            UserError: a stored number is not finite, or the file is damaged.
            IndexError: an index is outside the store.
            ValueError: the store is closed.
        """
        return to_structures(self.read_columns(indices), self._factors, self._extra)

    def read_columns(self, indices: Sequence[int] | np.ndarray | slice) -> dict[str, np.ndarray]:
        """The rows (b, ...) of every dataset that is read, as stored, with the checks of :meth:`read`.

        Where the file has no padding, rows end after the largest of these structures, or a few atoms later.
        """
        rows, reader = self._row_numbers(indices), self._open_reader
        try:
            values = reader.read(rows)
        except DAMAGES:
            raise damaged(self.path) from None
        self.rows_read += len(rows)
        if len(rows):
            self._check_rows(rows, values)
        return values

    def _row_numbers(self, indices: Sequence[int] | np.ndarray | slice) -> np.ndarray:
        if isinstance(indices, slice):
            return np.arange(*indices.indices(len(self)))
        rows = np.asarray(indices)
        if rows.size == 0:
            return np.zeros(0, dtype=np.int64)
        least, most = rows.min(), rows.max()
        if rows.dtype.kind not in "iu" or least < -len(self) or most >= len(self):
            raise IndexError(f"{self.path}: integers from 0 to {len(self) - 1} are expected, not {least} to {most}")
        return np.where(rows < 0, rows + len(self), rows) if least < 0 else rows

    def _check_rows(self, rows: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        """What the writer wrote is finite and fits; so a right checksum tells as much."""
        is_wrong = self._checksums(rows, values) != values["checksum"]
        if not is_wrong.any():
            return
        first = is_wrong.argmax()
        row = {key: values[key][first] for key in self._own}
        reason = "damaged, or changed after it was written"
        if not 1 <= row["n_atoms"] <= self.max_atoms:
            reason = "n_atoms does not fit R"
        elif not all(np.isfinite(array).all() for array in row.values()):
            reason = "numbers that are not finite"
        raise UserError(f"{self.path}: structure {rows[first]}: {reason}; {AGAIN}")

    def with_targets(self, targets: Targets) -> "Store":
        """The same store, open as long as this one, with further datasets."""
        return Store(self._file, targets)

    def close(self) -> None:
        self._reader = None
        if self._is_own:
            self._file.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _text(attribute: object) -> str:
    return attribute.decode() if isinstance(attribute, bytes) else str(attribute)
