"""Opening a store, or another HDF5 file of forgefield's: what is checked before the first read."""

import os
from pathlib import Path

import h5py

from forgefield.data.store.checksums import attributes_digest
from forgefield.data.store.layout import DIGEST, FORMAT_VERSION, columns
from forgefield.data.store.packed import FIRST, PACKED, PER_ATOM, holder, shape_of
from forgefield.data.targets import NUMBERS, Targets
from forgefield.errors import UserError
from forgefield.units import Units

AGAIN = "convert the dataset again"
# what h5py raises where it cannot make sense of a file
DAMAGES = (OSError, RuntimeError, KeyError, ValueError)


def open_file(path: Path, verb: str = "convert") -> h5py.File:
    """The file open for reading; ``verb`` is what makes such files.

    Raises:
        UserError: no such file, or not a whole HDF5 file.
        OSError: the file may not be read.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with `forgefield {verb}`")
    try:
        # Several processes read one file, also on file systems without locks.
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        if "locking flag" in str(error):  # this process has the file open with locks, and HDF5 wants all alike
            return h5py.File(path, "r")
        if error.errno:  # such as no permission
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from None
        if h5py.is_hdf5(path):
            raise damaged(path, verb) from None
        raise UserError(f"{path}: not an HDF5 file; make one with `forgefield {verb}`") from None


def is_store(path: Path) -> bool:
    """Whether a file is a store, or was one, by what it says of itself; damaged ones may be."""
    if not (path.is_file() and h5py.is_hdf5(path)):
        return False
    try:
        with open_file(path) as file:
            return "forgefield_format" in file.attrs
    except UserError:
        return True


def damaged(path: Path, verb: str = "convert") -> UserError:
    """What h5py says of such a file is about its internals."""
    return UserError(f"{path}: a damaged or truncated HDF5 file; make it again with `forgefield {verb}`")


def check_version(path: Path, attributes: dict[str, str]) -> None:
    version = attributes.get("forgefield_format")
    if version is None:
        raise UserError(f"{path}: an HDF5 file, but not a forgefield store; make one with `forgefield convert`")
    if version != FORMAT_VERSION:
        again = f"convert it again with `forgefield convert --dataset {attributes.get('dataset', 'NAME')}`"
        raise UserError(f"{path}: store format {version}, this version reads {FORMAT_VERSION}; {again}")


def check_attributes(path: Path, attributes: dict[str, str]) -> None:
    if attributes.get(DIGEST) != attributes_digest(attributes):
        raise UserError(f"{path}: attributes damaged, or changed after they were written; {AGAIN}")


def read_units(path: Path, attributes: dict[str, str]) -> Units:
    try:
        return Units.from_json(attributes.get("units", ""))
    except UserError as error:
        raise UserError(f"{path}: {error}; {AGAIN}") from None


def find_extra(path: Path, file: h5py.File, targets: Targets) -> list[str]:
    """The datasets of further values that are wanted and, where they may be absent, there.

    Raises:
        UserError: one is missing, holds no numbers, or is no weight per structure where one is wanted.
    """
    found = [*targets.required, *(key for key in targets.optional if key in file)]
    n, _ = shape_of(file)
    for key in found:
        dataset = file.get(key)
        if not isinstance(dataset, h5py.Dataset):
            raise UserError(f"{path}: no dataset {key!r} at the root; add one with a row per structure")
        if dataset.dtype.kind not in NUMBERS:
            raise UserError(f"{path}: dataset {key} is of type {dataset.dtype}; expected numbers")
        expected = (n,) if targets.is_weight(key) else (n, *dataset.shape[1:])
        if dataset.shape != expected:
            raise UserError(
                f"{path}: dataset {key} has shape {dataset.shape}; expected {expected}, a row per structure"
            )
    return found


def check_datasets(path: Path, file: h5py.File, has_virial: bool) -> None:
    """All datasets at the root have equally many rows, also a user's own, and those of the layout have its shapes."""
    packed = PER_ATOM if PACKED in file else ()
    names: dict[int, list[str]] = {}
    for key in file:
        if key not in packed and isinstance(item := file[key], h5py.Dataset):
            names.setdefault(item.shape[0] if item.shape else 0, []).append(key)
    if len(names) > 1:
        # the most usual length last, so that the odd ones come first
        lengths = sorted(names.items(), key=lambda item: len(item[1]))
        found = "; ".join(f"{', '.join(keys)}: {n}" for n, keys in lengths)
        raise UserError(f"{path}: datasets of unequal length ({found}); each has a row per structure; {AGAIN}")
    n, a = shape_of(file)
    expected = {key: (n, *column.tail) for key, column in columns(a, has_virial).items()}
    if packed:
        n_atoms = 0 if holder(file, "species") is None else len(holder(file, "species"))
        expected |= {key: (n_atoms, *expected[key][2:]) for key in packed} | {f"{PACKED}/{FIRST}": (n,)}
        if n_atoms < a:
            raise UserError(f"{path}: {n_atoms} atoms, but {a} in the largest structure; {AGAIN}")
    for key, shape in expected.items():
        found = holder(file, key)
        if found is None or found.shape != shape:
            raise UserError(f"{path}: dataset {key} has shape {found and found.shape}, expected {shape}; {AGAIN}")
