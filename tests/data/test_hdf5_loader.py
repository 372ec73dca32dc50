"""Batches from a store: what each of several processes reads of it."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import h5py
import jax
import numpy as np
import pytest

from forgefield.data.hdf5_loader import HDF5ParallelDataLoader
from forgefield.data.packing import PackedNeighbors
from forgefield.data.store import Store, StoreWriter
from forgefield.data.structures import Structure
from forgefield.data.targets import Targets
from forgefield.errors import UserError
from forgefield.units import Units

NEIGHBORS = PackedNeighbors(3.0, (1, 6))
N, BATCH, PROCESSES = 48, 8, 4


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A store of 48 structures of 5 atoms."""
    path, random = tmp_path_factory.mktemp("store") / "train.h5", np.random.default_rng(0)
    settings = {"units": Units("kJ/mol", "nm"), "dtype": np.float64, "has_virial": False, "attributes": {}}
    with StoreWriter(path, n_structures=N, max_atoms=5, **settings) as writer:
        for i in range(N):
            places = 1.5 * np.eye(3)[[0, 1, 2, 0, 1]] + random.normal(0, 0.4, (5, 3))
            labels = {"energy": float(i), "forces": random.normal(size=(5, 3)), "source_index": i}
            writer.append([Structure(np.array([6, 1, 1, 1, 1]), places, **labels)])
    return path


class Together:
    """Processes as threads, which wait for each other as processes do."""

    def __init__(self, index, barrier, items):
        self.index, self.count = index, len(items)
        self._barrier, self._items = barrier, items

    def exchange(self, item):
        self._items[self.index] = item
        self._barrier.wait()
        found = list(self._items)
        self._barrier.wait()
        return found

    def broadcast(self, item):
        return self.exchange(item)[0]


def loaders(path, **settings):
    """One for each process."""
    barrier, items = Barrier(PROCESSES), [None] * PROCESSES

    def make(index):
        own = {"parts": PROCESSES, "local_parts": range(index, index + 1)}
        together = Together(index, barrier, items)
        made = HDF5ParallelDataLoader(path, NEIGHBORS, BATCH, seed=1, processes=together, **own, **settings)
        made.plan(2)
        return made

    with ThreadPoolExecutor(PROCESSES) as pool:
        return list(pool.map(make, range(PROCESSES)))


def test_each_process_reads_its_share_only(path):
    alone = HDF5ParallelDataLoader(path, NEIGHBORS, BATCH, seed=1, cache_bytes=0)
    alone.plan(2)
    whole = alone.source.bytes_read
    with h5py.File(path) as file:
        stored = sum(dataset.nbytes for dataset in file.values())
    assert (alone.source.rows_read, whole) == (N, pytest.approx(stored, rel=0.1))
    for loader in loaders(path, cache_bytes=0):
        for epochs_read in (0, 1, 2):
            assert loader.source.rows_read == (1 + epochs_read) * N / PROCESSES
            assert loader.source.bytes_read == pytest.approx((1 + epochs_read) * whole / PROCESSES, rel=1e-12)
            list(loader.epoch(epochs_read % 2))


def test_each_process_reads_its_share_of_further_datasets_too(path, tmp_path):
    other = tmp_path / "train.h5"
    other.write_bytes(path.read_bytes())
    with h5py.File(other, "r+") as file:
        file["dipole"], file["trust"], file["unread"] = np.ones((N, 3)), np.ones(N), np.ones((N, 100))
    targets = Targets(("dipole",), {"U": "trust"})
    alone = HDF5ParallelDataLoader(path, NEIGHBORS, BATCH, seed=1, cache_bytes=0)
    for loader in loaders(other, cache_bytes=0, targets=targets):
        assert loader.source.bytes_read == (alone.source.bytes_read + N * 4 * 8) / PROCESSES
        list(loader.epoch(0))
        assert loader.source.rows_read == 2 * N / PROCESSES


def test_the_parts_of_all_processes_are_the_batch(path):
    alone = HDF5ParallelDataLoader(path, NEIGHBORS, BATCH, seed=1, parts=PROCESSES)
    alone.plan(2)
    for batches in zip(alone.epoch(1), *(loader.epoch(1) for loader in loaders(path)), strict=True):
        whole, *parts = batches
        for expected, loaded in zip(whole.parts, parts, strict=True):
            assert loaded.rows.tolist() == whole.rows.tolist()
            jax.tree.map(np.testing.assert_array_equal, expected, loaded.batch)


def test_a_mistake_names_the_file_and_the_frame(path):
    with pytest.raises(UserError, match=r"train\.h5: frame 0: the model does not know C \(it knows H\)"):
        HDF5ParallelDataLoader(path, PackedNeighbors(3.0, (1,)), BATCH)


def test_no_handle_stays_open(path):
    loader = HDF5ParallelDataLoader(path, NEIGHBORS, BATCH, cache_bytes=0)
    loader.plan(1)
    for unfinished in (False, True):
        batches = loader.epoch(0)
        next(batches)
        if unfinished:
            batches.close()
        else:
            list(batches)
        loader.structures([0])
        with h5py.File(path, "r+"):  # refused while another handle is open
            pass


def test_datasets_of_unequal_length_are_named(path, tmp_path):
    other = tmp_path / "train.h5"
    other.write_bytes(path.read_bytes())
    with h5py.File(other, "r+") as file:
        file["charge"] = np.zeros(N - 1)
    with pytest.raises(UserError, match=r"charge.*47"):
        HDF5ParallelDataLoader(other, NEIGHBORS, BATCH)
    with h5py.File(path) as file, Store(file) as store:
        assert len(store) == N
