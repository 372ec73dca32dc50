"""Structures that differ in size without padding, for stores in which it would take much room.

The numbers of real atoms lie one structure after the other in datasets of the group ``packed``. ``R``, ``F``,
``species`` and ``mask`` at the root are virtual datasets there: HDF5 shows them padded as in every store, each run of
structures of the same size from one stretch of packed numbers. A store itself reads what is packed.
"""

from collections.abc import Mapping

import h5py
import numpy as np

PACKED, FIRST = "packed", "first_atom"
"""The group, and its dataset (N,) with the place of each structure's first atom in the group's other datasets."""

PER_ATOM = ("R", "F", "species", "mask")
"""Those datasets, as they are called at the root as well."""

WORTH = 1.25
WORD = 8  # atoms; rows of so many of any type end at a whole word of a checksum


def is_worth_packing(sizes: np.ndarray) -> bool:
    """Whether padding structures (N,) of so many atoms would take a quarter more room, or more."""
    return len(sizes) * int(sizes.max()) > WORTH * int(sizes.sum())


def create_packed(
    file: h5py.File, sizes: np.ndarray, types: Mapping[str, np.dtype], allocation: h5py.h5p.PropDCID
) -> dict[str, h5py.Dataset]:
    """The packed datasets of a new store, and the virtual ones at its root.

    Args:
        file: open for writing.
        sizes: (N,) atoms of each structure; equal ones should follow each other.
        types: of the datasets.
        allocation: properties of the packed ones.
    """
    group, first = file.create_group(PACKED), np.cumsum(sizes) - sizes
    group.attrs["max_atoms"] = int(sizes.max())
    group.create_dataset(FIRST, data=first, dtype=np.int64)
    datasets = {}
    for key in PER_ATOM:
        shape = (int(sizes.sum()), 3) if key in ("R", "F") else (int(sizes.sum()),)
        datasets[key] = group.create_dataset(key, shape, types[key], dcpl=allocation)
        file.create_virtual_dataset(key, _padded_view(datasets[key], sizes, first), fillvalue=0)
    return datasets


def _padded_view(packed: h5py.Dataset, sizes: np.ndarray, first: np.ndarray) -> h5py.VirtualLayout:
    layout = h5py.VirtualLayout((len(sizes), int(sizes.max()), *packed.shape[1:]), packed.dtype)
    layout.dcpl.set_obj_track_times(False)  # as of all others, so that the same data are the same bytes
    starts = np.flatnonzero(np.diff(sizes, prepend=-1)).tolist()
    for start, stop in zip(starts, [*starts[1:], len(sizes)], strict=True):
        size, begin = int(sizes[start]), int(first[start])
        source = h5py.VirtualSource(".", packed.name, packed.shape, packed.dtype)
        layout[start:stop, :size] = source[begin : begin + (stop - start) * size]
    return layout


def holder(file: h5py.File, key: str) -> h5py.Dataset | None:
    """The dataset that holds a column's numbers; None if there is none.

    HDF5 keeps the description of virtual datasets in a heap without checksum, damage to which can make it hang, so
    these are not touched.
    """
    item = file[PACKED].get(key) if key in PER_ATOM and PACKED in file else file.get(key)
    return item if isinstance(item, h5py.Dataset) else None


def shape_of(file: h5py.File) -> tuple[int, int]:
    """Structures of a store and atoms of the largest; zeros where it does not tell."""
    species = holder(file, "species")
    if species is None:
        return 0, 0
    if PACKED in file:
        return len(file["n_atoms"]), int(file[PACKED].attrs["max_atoms"])
    return species.shape if species.ndim == 2 else (0, 0)


def padded(values: np.ndarray, sizes: np.ndarray, width: int) -> np.ndarray:
    """(b, width, ...) from the numbers (n, ...) of b structures' atoms, with zeros behind those of each."""
    shape = (len(sizes), width, *values.shape[1:])
    if (sizes == width).all():
        return values.reshape(shape)
    rows = np.zeros(shape, values.dtype)
    rows[np.arange(width) < sizes[:, None]] = values
    return rows


def width_for(sizes: np.ndarray, max_atoms: int) -> int:
    """Atoms to which the rows of some structures are padded in memory; as many as their checksums need."""
    return min(max_atoms, -(-int(sizes.max(initial=1)) // WORD) * WORD)
