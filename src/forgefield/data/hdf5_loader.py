"""Batches from an HDF5 store, of which every process reads its own part."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from forgefield.data.loaders import BatchLoader, LoadedBatch
from forgefield.data.packing import PackedNeighbors
from forgefield.data.store import Store
from forgefield.data.structures import Structure
from forgefield.data.targets import NO_TARGETS, Targets


class StoreFile:
    """A store as a source of structures; its file is open only while it is read.

    Attributes:
        path: the file.
        places: where the structures' frames are in the files that the store was made from.
        n_atoms: (N,) of each structure.
        targets: which datasets besides the store's own are read.
        rows_read, bytes_read: what was read until it was closed, see :class:`~forgefield.data.store.Store`.
    """

    def __init__(self, path: Path | str, targets: Targets = NO_TARGETS) -> None:
        self.path, self.targets = Path(path), targets
        self.rows_read = self.bytes_read = 0
        self._store: Store | None = None
        with Store(self.path, targets) as store:
            self.has_virial, self.places, self.n_atoms = store.has_virial, store.places, store.n_atoms

    def __len__(self) -> int:
        return len(self.n_atoms)

    def read(self, indices: Sequence[int]) -> list[Structure]:
        """The structures at ``indices``; the file stays open until :meth:`close`."""
        if self._store is None:
            self._store = Store(self.path, self.targets)
        return self._store.read(indices)

    def close(self) -> None:
        if self._store is not None:
            self.rows_read += self._store.rows_read
            self.bytes_read += self._store.bytes_read
            self._store.close()
            self._store = None


class HDF5ParallelDataLoader(BatchLoader):
    """Batches of a store, of which each process opens and closes its own read-only handle.

    Every process knows which structures make a batch and reads only those of its own devices: each rank of MPI a
    contiguous part of the batch, in JAX the parts of the local devices.

    Args:
        path: the store.
        neighbors: see :class:`~forgefield.data.loaders.BatchLoader`.
        batch: likewise.
        targets: likewise.
        **settings: likewise.

    Raises:
        UserError: no such file, not a store, datasets of unequal length, or one of ``targets`` is not there.
    """

    source: StoreFile

    def __init__(
        self,
        path: Path | str,
        neighbors: PackedNeighbors,
        batch: int,
        *,
        targets: Targets = NO_TARGETS,
        **settings: Any,
    ) -> None:
        super().__init__(StoreFile(path, targets), neighbors, batch, targets=targets, **settings)
        self.source.close()

    def epoch(self, epoch: int, start: int = 0) -> Iterator[LoadedBatch]:
        try:
            yield from super().epoch(epoch, start)
        finally:
            self.source.close()

    def structures(self, rows: Sequence[int]) -> list[Structure]:
        try:
            return super().structures(rows)
        finally:
            self.source.close()
