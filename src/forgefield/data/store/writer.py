"""Writing a store as a stream: memory holds the appended block of structures only."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import h5py
import numpy as np

import forgefield
from forgefield.data.store.checksums import RowChecksums, attributes_digest
from forgefield.data.store.layout import DIGEST, FORMAT_VERSION, columns
from forgefield.data.store.packed import PER_ATOM, create_packed, padded, width_for
from forgefield.data.structures import Structure
from forgefield.errors import MachineError
from forgefield.files import atomic_file
from forgefield.units import Units

# Datasets in one piece, each at a multiple of 64 bytes, are read fastest; docs/performance.md has the figures. From
# version 1.10 on HDF5 has checksums of what describes the datasets; in older files damage there can make it hang.
FILE = {"alignment_threshold": 1, "alignment_interval": 64, "libver": ("v110", "v110")}


class StoreWriter:
    """A store being written; a context manager that gives the file its name only once it is complete.

    Args:
        path: the file to make or replace.
        n_structures: how many structures will be appended, at least one.
        max_atoms: atoms of the largest of them.
        units: the units of the file; energies follow in float64 whatever ``dtype`` is, since total energies need it.
        dtype: float64 or float32, of positions, forces, cells and virials.
        has_virial: whether to store virials.
        attributes: further root attributes, such as source, source_sha256 and split.
        packed_sizes: (N,) atoms of each structure that will be appended, to store them without padding; equal ones
            should follow each other. None pads all to the largest.

    Raises:
        MachineError: the disk refuses to take the data.
        ValueError: ``packed_sizes`` do not fit the other arguments; on leaving, other than ``n_structures`` structures
            were appended.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        n_structures: int,
        max_atoms: int,
        units: Units,
        dtype: np.dtype | type | str,
        has_virial: bool,
        attributes: Mapping[str, str],
        packed_sizes: np.ndarray | None = None,
    ):
        self.path = Path(path)
        self._n, self._max_atoms, self._units = n_structures, max_atoms, units
        self._dtype, self._has_virial, self._attributes = np.dtype(dtype), has_virial, attributes
        if packed_sizes is not None and (len(packed_sizes) != n_structures or packed_sizes.max() != max_atoms):
            raise ValueError(f"{path}: packed_sizes are not those of {n_structures} structures of up to {max_atoms}")
        self._packed_sizes = packed_sizes
        self._written = self._atoms_written = 0

    def __enter__(self) -> "StoreWriter":
        with _disk_faults(self.path), ExitStack() as stack:
            self._temporary = stack.enter_context(atomic_file(self.path))
            self._file = stack.enter_context(h5py.File(self._temporary, "w", **FILE))
            self._create()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if error is None and self._written != self._n:
            error = ValueError(f"{self.path}: {self._written} of {self._n} structures written")
            self._stack.__exit__(ValueError, error, None)
            raise error
        with _disk_faults(self.path):
            self._stack.__exit__(kind, error, trace)

    def _create(self) -> None:
        allocation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        allocation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        layout = columns(self._max_atoms, self._has_virial)
        types = {key: np.dtype(column.dtype or self._dtype) for key, column in layout.items()}
        self._datasets = {}  # kept open, since a dataset that is closed by going out of use hides a failed write
        if self._packed_sizes is not None:
            self._datasets |= create_packed(self._file, self._packed_sizes, types, allocation)
        for key, column in layout.items():
            if key not in self._datasets:
                shape = (self._n, *column.tail)
                self._datasets[key] = self._file.create_dataset(key, shape, types[key], dcpl=allocation)
        summed = [key for key in layout if key not in ("mask", "checksum")]
        self._checksums = RowChecksums({key: (layout[key].tail, types[key]) for key in summed})
        own = {
            "forgefield_format": FORMAT_VERSION,
            "units": self._units.to_json(),
            "created_by": f"forgefield {forgefield.__version__}",
        }
        attributes = {**self._attributes, **own}
        for key, text in {**attributes, DIGEST: attributes_digest(attributes)}.items():
            _write_attribute(self._file, key, text)
        self._file.flush()
        _reserve(self._file.id.get_vfd_handle(), self._file.id.get_filesize())

    def append(self, structures: Sequence[Structure]) -> None:
        """Write structures in eV and Å after those already written; absent labels get the weight 0.

        Raises:
            ValueError: a number is not finite, which checksums could not tell from what was meant, or a structure is
                larger than was said.
        """
        rows = slice(self._written, self._written + len(structures))
        values_of = self._values(structures)
        values_of = {key: np.asarray(values, self._datasets[key].dtype) for key, values in values_of.items()}
        if lost := [key for key, values in values_of.items() if not np.isfinite(values).all()]:
            raise ValueError(f"{self.path}: numbers in {', '.join(lost)} that are not finite")
        padded_of = self._padded(values_of)
        checksum = self._checksums(np.arange(rows.start, rows.stop), padded_of)
        if self._packed_sizes is None:
            values_of, atoms = padded_of, rows
        else:
            atoms = slice(self._atoms_written, self._atoms_written + len(values_of["R"]))
        with _disk_faults(self.path, self._temporary):
            for key, values in {**values_of, "checksum": checksum}.items():
                self._datasets[key][atoms if key in PER_ATOM else rows] = values
            self._file.flush()
        self._written, self._atoms_written = rows.stop, atoms.stop

    def _padded(self, values_of: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Columns whose rows are structures, those of atoms padded to A, or to what a checksum needs."""
        sizes, width = values_of["n_atoms"], self._max_atoms
        if sizes.max() > width:
            raise ValueError(f"{self.path}: a structure of {sizes.max()} atoms; max_atoms is {width}")
        if self._packed_sizes is not None:
            if not np.array_equal(sizes, self._packed_sizes[self._written : self._written + len(sizes)]):
                raise ValueError(f"{self.path}: structures of other sizes than packed_sizes")
            width = width_for(sizes, width)
        return {key: padded(v, sizes, width) if key in PER_ATOM else v for key, v in values_of.items()}

    def _values(self, structures: Sequence[Structure]) -> dict[str, np.ndarray]:
        """The columns of these structures in the file's units, those of atoms without padding."""
        factors = Units().factors(self._units)  # from eV and Å
        sizes = np.array([len(s) for s in structures])
        forces = [np.zeros((len(s), 3)) if s.forces is None else s.forces for s in structures]
        values = {
            "R": np.concatenate([s.positions for s in structures]) * factors.length,
            "F": np.concatenate(forces) * factors.forces,
            "species": np.concatenate([s.numbers for s in structures]),
            "mask": np.ones(sizes.sum(), bool),
            "U": np.array([0.0 if s.energy is None else s.energy for s in structures]) * factors.energy,
            "U_weight": np.array([0.0 if s.energy is None else s.energy_weight for s in structures]),
            "F_weight": np.array([0.0 if s.forces is None else s.forces_weight for s in structures]),
            "box": np.array([s.cell for s in structures]) * factors.length,
            "pbc": np.array([s.pbc for s in structures]),
            "n_atoms": sizes,
            "source_index": np.array([s.source_index for s in structures]),
        }
        if self._has_virial:
            zero = np.zeros((3, 3))
            virials = [zero if s.virial is None else s.virial for s in structures]
            values["virial"] = np.array(virials) * factors.virial
            values["virial_weight"] = np.array([0.0 if s.virial is None else s.virial_weight for s in structures])
        return values


def _write_attribute(file: h5py.File, key: str, text: str) -> None:
    """Of fixed length: texts of variable length lie in a heap without checksum, damage to which can make HDF5 hang."""
    content = text.encode()
    file.attrs.create(key, content or b"\0", dtype=h5py.string_dtype("utf-8", max(1, len(content))))


def _reserve(file: int, size: int) -> None:
    """Take the room of a file, so that a full disk is seen now, not after hours."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:  # macOS, which can only set the length; a full disk is seen when it is written
        os.truncate(file, size)


@contextmanager
def _disk_faults(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Turn a failed write into a MachineError, having given HDF5 the room without which closing the file crashes."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if temporary:
            os.truncate(temporary, 0)
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else " ".join(str(error).split())
        raise MachineError(f"{path}: cannot be written ({reason}); free space or choose another place") from None
