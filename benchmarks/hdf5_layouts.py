"""The layouts that hdf5_reading.py compares: how each is written, and how it is read."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from forgefield.data.store import Store, StoreWriter
from forgefield.data.store.assembly import to_structures
from forgefield.data.store.packed import is_worth_packing
from forgefield.data.structures import Structure
from forgefield.units import Units

MEMMAP, STORE, PADDED = "numpy.memmap", "store", "store, padded"
CHUNK_BYTES, LARGE_CACHE = 32 * 1024, 2**30
LZF = {"compression": "lzf", "shuffle": True, "fletcher32": True}


@dataclass(frozen=True)
class Layout:
    """How a copy of a store is written and opened: chunks hold about so many bytes, at least a row; None: no chunks."""

    chunk_bytes: int | None = None
    filters: Mapping[str, Any] | None = None
    cache: int | None = None


# a copy without chunks is read by HDF5, not through a memory map; stores differ where padding takes much room
LAYOUTS: dict[str, Layout | None] = {
    STORE: None,
    PADDED: None,
    "one piece, read by HDF5": Layout(),
    "chunks of a structure": Layout(1),
    "chunks of a structure, read_direct_chunk": Layout(1),
    "chunks of a structure, lzf": Layout(1, LZF),
    "chunks of 32 KiB": Layout(CHUNK_BYTES),
    "chunks of 32 KiB, lzf": Layout(CHUNK_BYTES, LZF),
    "chunks of 32 KiB, lzf, cache of 1 GiB": Layout(CHUNK_BYTES, LZF, LARGE_CACHE),
}


@dataclass(frozen=True)
class Reader:
    """What reads a batch, given its row numbers, into columns and into structures, where a layout has both."""

    columns: Callable[[np.ndarray], dict[str, np.ndarray]]
    structures: Callable[[np.ndarray], list[Structure]] | None = None


def write_case(folder: Path, n: int, least: int, most: int, layouts: Sequence[str]) -> dict[str, Path]:
    """Write n random structures in every layout, in the units of a converted dataset; return the files."""
    random = np.random.default_rng(0)
    sizes = np.sort(random.integers(least, most + 1, n))
    sizes[-1] = most
    padded = folder / "padded.h5"
    _write(padded, sizes, None)
    store = padded
    if is_worth_packing(sizes):
        store = folder / "store.h5"
        _write(store, sizes, sizes)
    paths = {MEMMAP: padded}
    if STORE in layouts and store == padded:  # the same file twice
        layouts = [name for name in layouts if name != PADDED]
    for i, name in enumerate(layouts):
        layout = LAYOUTS[name]
        paths[name] = {STORE: store, PADDED: padded}.get(name, folder / f"{i}.h5")
        if layout is not None:
            _copy(padded, paths[name], layout)
    return paths


def _write(path: Path, sizes: np.ndarray, packed_sizes: np.ndarray | None) -> None:
    """Random structures of these sizes, the same ones every time."""
    settings = {"units": Units("kJ/mol", "nm"), "dtype": np.float64, "has_virial": False, "attributes": {}}
    random = np.random.default_rng(0)
    layout = {"n_structures": len(sizes), "max_atoms": int(sizes.max()), "packed_sizes": packed_sizes}
    with StoreWriter(path, **layout, **settings) as writer:
        for start in range(0, len(sizes), 1000):
            writer.append([_structure(size, random) for size in sizes[start : start + 1000]])


def _structure(size: int, random: np.random.Generator) -> Structure:
    numbers = random.choice([1, 6, 7, 8], size)
    return Structure(numbers, random.normal(size=(size, 3)), energy=-1e4, forces=random.normal(size=(size, 3)))


def _copy(store: Path, path: Path, layout: Layout) -> None:
    if layout.chunk_bytes is None:
        shutil.copyfile(store, path)
        return
    with h5py.File(store) as source, h5py.File(path, "w") as target:
        target.attrs.update(source.attrs)
        for key, dataset in source.items():
            rows = min(len(dataset), max(1, layout.chunk_bytes * len(dataset) // dataset.nbytes))
            chunks = (rows, *dataset.shape[1:])
            target.create_dataset(key, data=dataset[:], chunks=chunks, **(layout.filters or {}))


def open_readers(stack: ExitStack, paths: Mapping[str, Path]) -> dict[str, Reader]:
    """Readers of all layouts, whose files the stack closes."""
    readers = {MEMMAP: _memmap(paths[MEMMAP])}
    for name, path in paths.items():
        layout = LAYOUTS.get(name)
        if name in (STORE, PADDED):
            store = stack.enter_context(Store(path))
            readers[name] = Reader(store.read_columns, store.read)
        elif layout is not None:
            cache = {} if layout.cache is None else {"rdcc_nbytes": layout.cache, "rdcc_nslots": 1_000_003}
            # HDF5 reads what is in one piece where the file is open for writing
            file = stack.enter_context(h5py.File(path, "r+" if layout.chunk_bytes is None else "r", **cache))
            if name.endswith("read_direct_chunk"):
                readers[name] = Reader(_direct(file))
            else:
                store = stack.enter_context(Store(file))
                readers[name] = Reader(store.read_columns, store.read)
    return readers


def _memmap(path: Path) -> Reader:
    with h5py.File(path) as file, Store(file) as store:
        factors = store.units.factors(Units())
        maps = {
            key: np.memmap(path, dataset.dtype, "r", dataset.id.get_offset(), dataset.shape)
            for key, dataset in file.items()
            if key not in ("mask", "checksum")
        }

    def columns(rows: np.ndarray) -> dict[str, np.ndarray]:
        return {key: values[rows] for key, values in maps.items()}

    return Reader(columns, lambda rows: to_structures(columns(rows), factors))


def _direct(file: h5py.File) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    datasets = {key: dataset for key, dataset in file.items() if key not in ("mask", "checksum")}

    def column(dataset: h5py.Dataset, rows: list[int]) -> np.ndarray:
        inner = (0,) * (dataset.ndim - 1)
        content = b"".join(dataset.id.read_direct_chunk((row, *inner))[1] for row in rows)
        return np.frombuffer(content, dataset.dtype).reshape(-1, *dataset.shape[1:])

    return lambda rows: {key: column(dataset, rows.tolist()) for key, dataset in datasets.items()}
