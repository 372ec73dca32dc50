"""Systems of DeePMD-kit, as folders of npy files and as groups of the same names in an HDF5 file, in eV and Å.

A system has the types of its atoms (type.raw), the elements of the types (type_map.raw), a file nopbc where it is not
periodic, and sets of frames (set.000, set.001, ...). In the mixed layout each frame has types of its own. Its virial is
minus the stress times the volume, as here.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from ase.data import atomic_numbers

from forgefield.data.sources.frames import RawFrame, ReadOptions
from forgefield.data.sources.hdf5_groups import open_hdf5
from forgefield.errors import UserError

LABELS = {"energy": "energy", "force": "forces", "virial": "virial"}
"""Name of a file -> the label it is; other files are kept by their own names."""

Load = Callable[[str], Any]


def is_system(path: Path) -> bool:
    """Whether a directory is a system."""
    return (path / "type.raw").is_file() and any(path.glob("set.*/coord.npy"))


def read_folder(path: Path, options: ReadOptions) -> Iterator[RawFrame]:
    """Stream the frames of one system.

    Raises:
        UserError: a file is missing, damaged, or does not fit the others.
    """
    names = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
    yield from _system(path, set(names), lambda name: _load(path / name))


def holds_systems(file: h5py.File) -> bool:
    """Whether an HDF5 file holds systems."""
    return bool(_groups(file))


def read_hdf5_systems(path: Path, options: ReadOptions) -> Iterator[RawFrame]:
    """Stream the frames of all systems in one HDF5 file, in alphabetical order.

    Raises:
        UserError: as :func:`read_folder`.
    """
    with open_hdf5(path, options) as file:
        for name in _groups(file):
            group, names = file[name], set()
            group.visititems(lambda key, item, names=names: names.add(key) if isinstance(item, h5py.Dataset) else None)
            where = path if name == "/" else f"{path}, {name}"
            yield from _system(where, names, lambda key, group=group: group[key])


def _groups(file: h5py.File) -> list[str]:
    if "type.raw" in file:
        return ["/"]
    return [name for name, item in file.items() if isinstance(item, h5py.Group) and "type.raw" in item]


def _load(file: Path) -> Any:
    if file.suffix == ".raw":
        return np.array(file.read_text().split())
    return np.load(file, mmap_mode="r", allow_pickle=False)


def _system(where: object, names: set[str], load: Load) -> Iterator[RawFrame]:
    try:
        if "type_map.raw" not in names:
            raise UserError(f"{where}: no type_map.raw, which names the elements; write them there, one a line")
        elements = np.array([_number(where, word) for word in _words(load("type_map.raw"))])
        types = np.array(_words(load("type.raw")), int)
        pbc = np.full(3, not any(name.startswith("nopbc") for name in names))
        for folder in sorted({name.split("/")[0] for name in names if re.match(r"set\.[^/]+/coord\.npy", name)}):
            arrays = {name.split("/")[1][:-4]: load(name) for name in names if name.startswith(f"{folder}/")}
            yield from _frames(f"{where}/{folder}", arrays, elements, types, pbc)
    except (OSError, ValueError, IndexError, EOFError) as error:
        raise UserError(f"{where}: not a readable DeePMD system ({error}); repair it") from None


def _frames(
    where: str, arrays: dict[str, Any], elements: np.ndarray, types: np.ndarray, pbc: np.ndarray
) -> Iterator[RawFrame]:
    coordinates, box, mixed = arrays.pop("coord"), arrays.pop("box", None), arrays.pop("real_atom_types", None)
    n_frames, n_atoms = len(coordinates), len(types)
    if coordinates.shape[1:] != (3 * n_atoms,):
        raise UserError(f"{where}: coord has shape {coordinates.shape}, but type.raw {n_atoms} atoms; repair it")
    if box is None and pbc.any():
        raise UserError(f"{where}: no box; add it, or a file nopbc to the system if it is not periodic")
    for name, array in arrays.items():
        if len(array) != n_frames:
            raise UserError(f"{where}: {name} has {len(array)} rows, but coord {n_frames}; repair it")
    for i in range(n_frames):
        own = types if mixed is None else np.asarray(mixed[i])
        real = own >= 0  # the mixed layout pads with atoms of type -1
        values = {LABELS.get(name, name): np.asarray(array[i]) for name, array in arrays.items()}
        if "forces" in values:
            values["forces"] = values["forces"].reshape(n_atoms, 3)[real]
        cell = np.zeros((3, 3)) if box is None or not pbc.any() else np.asarray(box[i], float).reshape(3, 3)
        yield RawFrame(elements[own[real]], np.asarray(coordinates[i]).reshape(n_atoms, 3)[real], cell, pbc, values)


def _words(content: Any) -> list[str]:
    """Entries of a raw file, which HDF5 has as bytes or numbers."""
    flat = np.asarray(content[()] if isinstance(content, h5py.Dataset) else content).ravel().tolist()
    return [entry.decode() if isinstance(entry, bytes) else str(entry) for entry in flat]


def _number(where: object, word: str) -> int:
    if word not in atomic_numbers:
        raise UserError(f"{where}: type_map.raw has {word!r}, which is no element; correct it")
    return atomic_numbers[word]
