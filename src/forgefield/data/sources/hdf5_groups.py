"""HDF5 files with a group for each structure, as SPICE's, or for each number of atoms or molecule, as ANI-1x's.

A group that has atomic numbers and positions is one structure, or several with a row each. Everything else in it that
has a row for each structure is a value of it, and so is every attribute. The attribute ``units`` of a dataset states
them. NaN marks what is missing.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from forgefield.data.sources.frames import RawFrame, ReadOptions
from forgefield.errors import UserError

POSITIONS = ("positions", "coord", "coordinates", "conformations", "pos", "geometries", "R")
NUMBERS = ("atomic_numbers", "numbers", "elements", "species", "z", "Z")
CELLS = ("cell", "box", "lattice")
KINDS = {"energy": "energy", "energies": "energy", "gradient": "forces", "gradients": "forces"}
KINDS |= {"force": "forces", "forces": "forces", "stress": "stress", "virial": "virial"}
BLOCK = 256  # structures read at a time


@contextmanager
def open_hdf5(path: Path, options: ReadOptions) -> Iterator[h5py.File]:
    """The file open for reading.

    Raises:
        UserError: it is damaged.
    """
    try:
        with h5py.File(path, "r", locking=False) as file:
            yield file
    except (OSError, RuntimeError, KeyError) as error:
        raise UserError(f"{path}: not a readable HDF5 file ({error}); copy it again or {options.remedy}") from None


def holds_groups(file: h5py.File) -> bool:
    """Whether the first group with datasets has atomic numbers and positions."""
    return next(_groups(file), None) is not None


def stated_units(path: Path, options: ReadOptions) -> dict[str, str]:
    """Kind of quantity -> the unit that the first group states for it."""
    found = {}
    with open_hdf5(path, options) as file:
        for key, item in next(_groups(file)).items():
            word = item.attrs.get("units", item.attrs.get("unit"))
            kind = "length" if key in POSITIONS else _kind(key)
            if kind and isinstance(word, str | bytes):
                found.setdefault(kind, word.decode() if isinstance(word, bytes) else word)
    return found


def _kind(key: str) -> str | None:
    return next((KINDS[word] for word in re.split(r"[\W_]+", key.lower()) if word in KINDS), None)


def read_groups(path: Path, options: ReadOptions) -> Iterator[RawFrame]:
    """Stream the structures of all groups.

    Raises:
        UserError: the file is damaged, or an array does not fit the others.
    """
    with open_hdf5(path, options) as file:
        for group in _groups(file):
            yield from _structures(f"{path}, {group.name}", group)


def _groups(group: h5py.Group) -> Iterator[h5py.Group]:
    """Groups with atomic numbers and positions, in the order of their names, however deep."""
    if _first(group, POSITIONS) and _first(group, NUMBERS):
        yield group
        return
    for item in group.values():
        if isinstance(item, h5py.Group):
            yield from _groups(item)


def _structures(where: str, group: h5py.Group) -> Iterator[RawFrame]:
    positions, numbers, cell = _first(group, POSITIONS), _first(group, NUMBERS), _first(group, CELLS)
    shape, z = group[positions].shape, np.asarray(group[numbers])
    several = len(shape) == 3
    if shape[-1:] != (3,) or len(shape) not in (2, 3) or z.shape not in (shape[-2:-1], shape[:-1]):
        found = f"{positions} has shape {shape} and {numbers} {z.shape}"
        raise UserError(f"{where}: {found}; expected a number and three coordinates for each atom")
    n = shape[0] if several else 1
    attributes = {key: value for key, value in group.attrs.items() if not isinstance(value, h5py.Empty)}
    rows = {key: item for key, item in group.items() if isinstance(item, h5py.Dataset)}
    rows = {key: item for key, item in rows.items() if key not in (numbers, cell, "pbc")}
    rows = {key: item for key, item in rows.items() if not several or item.shape[:1] == (n,)}
    cells = np.zeros((3, 3)) if cell is None else np.asarray(group[cell], float).reshape(-1, 3, 3)
    pbc = group["pbc"][()] if "pbc" in group else cell is not None
    cells, pbc = np.broadcast_to(cells, (n, 3, 3)), np.broadcast_to(np.asarray(pbc, bool), (n, 3))
    for start in range(0, n, BLOCK):
        block = {key: item[start : start + BLOCK] if several else [item[()]] for key, item in rows.items()}
        for i, r in enumerate(block.pop(positions)):
            own = z[start + i] if z.ndim == 2 else z
            values = _values(attributes | {key: array[i] for key, array in block.items()})
            yield RawFrame(own, r, cells[start + i], pbc[start + i], values)


def _values(values: dict[str, Any]) -> dict[str, Any]:
    """Without what is missing, and gradients as the forces that they are the negative of."""
    found = {}
    for key, value in values.items():
        number = isinstance(value, np.ndarray | np.generic | float) and np.asarray(value).dtype.kind == "f"
        if number and np.isnan(value).all():
            continue
        if number and "gradient" in key.lower():
            key, value = re.sub("gradients?", "forces", key, flags=re.IGNORECASE), -np.asarray(value)
        found[key] = value
    return found


def _first(group: h5py.Group, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if isinstance(group.get(name), h5py.Dataset)), None)
