"""Reading a store."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np

from forgefield.data.store.layout import FORMAT_VERSION, columns
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.units import Units


class Store:
    """A store opened for reading; use it as a context manager.

    Attributes:
        path: the file.
        units: the units of the numbers in the file; :meth:`read` converts them to eV and Å.
        attributes: the root attributes, as text.
        max_atoms: A, the atoms of the largest structure.
        has_virial: whether the file holds virials.
        n_atoms, source_index: (N,) of every structure.

    Raises:
        UserError: no such file, not a store, truncated, another format version, or datasets that do not fit together.
        OSError: the file may not be read.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self._file = _open(self.path)
        try:
            self._check_and_load()
        except (OSError, RuntimeError):
            self.close()
            raise _damaged(self.path) from None
        except BaseException:
            self.close()
            raise

    def _check_and_load(self) -> None:
        self.attributes = {key: str(value) for key, value in self._file.attrs.items()}
        self._check_version()
        self.has_virial = "virial" in self._file
        self._check_shapes()
        self.units = self._read_units()
        self._factors = self.units.factors(Units())  # to eV and Å
        self.max_atoms = int(self._file["R"].shape[1])
        self.n_atoms = self._file["n_atoms"][:].astype(np.int64)
        self.source_index = self._file["source_index"][:].astype(np.int64)
        self._scalars = {key: self._file[key][:].astype(np.float64) for key in self._scalar_names()}
        if not all(np.isfinite(values).all() for values in self._scalars.values()):
            raise UserError(f"{self.path}: an energy or weight is not finite; convert the dataset again")
        if len(self) and not (self.n_atoms.min() >= 1 and self.n_atoms.max() <= self.max_atoms):
            raise UserError(f"{self.path}: n_atoms does not fit R; convert the dataset again")

    def _scalar_names(self) -> list[str]:
        return ["U", "U_weight", "F_weight"] + ["virial_weight"] * self.has_virial

    def _check_version(self) -> None:
        version = self.attributes.get("forgefield_format")
        if version is None:
            raise UserError(
                f"{self.path}: an HDF5 file, but not a forgefield store; make one with `forgefield convert`"
            )
        if version != FORMAT_VERSION:
            raise UserError(
                f"{self.path}: store format {version}, this version reads {FORMAT_VERSION}; convert the dataset again"
            )

    def _read_units(self) -> Units:
        try:
            return Units.from_json(self.attributes.get("units", ""))
        except UserError as error:
            raise UserError(f"{self.path}: {error}; convert the dataset again") from None

    def _check_shapes(self) -> None:
        species = self._file.get("species")
        n, a = species.shape if species is not None and species.ndim == 2 else (0, 0)
        for key, column in columns(a, self.has_virial).items():
            found = self._file[key].shape if key in self._file else None
            if found != (n, *column.tail):
                raise UserError(
                    f"{self.path}: dataset {key} has shape {found}, expected {(n, *column.tail)}; "
                    "convert the dataset again"
                )

    @cached_property
    def elements(self) -> tuple[int, ...]:
        """Atomic numbers that occur, in ascending order."""
        species = self._file["species"]
        found = {int(z) for rows in species.iter_chunks() for z in np.unique(species[rows])} if len(self) else set()
        return tuple(sorted(found - {0}))

    def __len__(self) -> int:
        return len(self.n_atoms)

    def read(self, indices: Sequence[int] | np.ndarray | slice) -> list[Structure]:
        """The structures at ``indices``, in that order, in eV and Å; a label whose weight is 0 is None.

        Raises:
            UserError: a stored number is not finite, or the file is damaged.
            IndexError: an index is outside the store.
        """
        rows = np.arange(len(self))[indices]
        unique, inverse = np.unique(rows, return_inverse=True)
        try:
            columns = {key: self._rows(key, unique) for key in ("R", "species", "F", "box", "pbc")}
            if self.has_virial:
                columns["virial"] = self._rows("virial", unique)
        except (OSError, RuntimeError):
            raise _damaged(self.path) from None
        structures = [self._structure(int(row), i, columns) for i, row in enumerate(unique)]
        return [structures[i] for i in inverse]

    def _rows(self, key: str, rows: np.ndarray) -> np.ndarray:
        """Rows (sorted, unique) of a dataset; rows that lie close together are read as one block, which is faster."""
        if len(rows) == 0:
            return self._file[key][:0]
        first, last = int(rows[0]), int(rows[-1]) + 1
        if last - first <= 4 * len(rows):
            return self._file[key][first:last][rows - first]
        return self._file[key][rows]

    def _structure(self, row: int, i: int, columns: dict[str, np.ndarray]) -> Structure:
        n, factors = self.n_atoms[row], self._factors
        arrays = {key: columns[key][i].astype(np.float64) for key in columns if key not in ("species", "pbc")}
        if not all(np.isfinite(values).all() for values in arrays.values()):
            raise UserError(
                f"{self.path}: structure {row} holds numbers that are not finite; convert the dataset again"
            )
        scalars = {key: float(values[row]) for key, values in self._scalars.items()}
        virial_weight = scalars.get("virial_weight", 0.0)
        return Structure(
            numbers=columns["species"][i, :n].astype(np.int64),
            positions=arrays["R"][:n] * factors.length,
            cell=arrays["box"] * factors.length,
            pbc=columns["pbc"][i].astype(bool),
            energy=scalars["U"] * factors.energy if scalars["U_weight"] else None,
            forces=arrays["F"][:n] * factors.forces if scalars["F_weight"] else None,
            virial=arrays["virial"] * factors.virial if virial_weight else None,
            energy_weight=scalars["U_weight"],
            forces_weight=scalars["F_weight"],
            virial_weight=virial_weight,
            source_index=int(self.source_index[row]),
        )

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _open(path: Path) -> h5py.File:
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with `forgefield convert`")
    try:
        # Several processes read one file, also on file systems without locks.
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        if error.errno:  # such as no permission
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from None
        if h5py.is_hdf5(path):
            raise _damaged(path) from None
        raise UserError(f"{path}: not an HDF5 file; make one with `forgefield convert`") from None


def _damaged(path: Path) -> UserError:
    """What h5py says of such a file is about its internals."""
    return UserError(f"{path}: a damaged or truncated HDF5 file; convert the dataset again")
