"""Structures of a source with their neighbor lists: measured once, then kept in memory."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from forgefield.data.neighbors import NeighborPairs, neighbor_counts
from forgefield.data.packing import PackedNeighbors
from forgefield.data.places import Places, placed
from forgefield.data.plans import Sizes
from forgefield.data.processes import OneProcess, Processes, share_by_work
from forgefield.data.structures import Structure
from forgefield.data.targets import NO_TARGETS, Targets
from forgefield.errors import UserError

READ_AHEAD = 256


class Source(Protocol):
    """Where structures (eV, Å) come from, such as an open ``Store``.

    Its ``places``, if any, are named in messages; by its ``n_atoms``, if any, processes share its structures evenly.
    """

    @property
    def has_virial(self) -> bool: ...

    def __len__(self) -> int: ...

    def read(self, indices: Sequence[int]) -> list[Structure]: ...


class StructureList:
    """Structures in memory as a :class:`Source`."""

    def __init__(self, structures: Sequence[Structure]) -> None:
        self._structures = structures

    @property
    def has_virial(self) -> bool:
        return any(s.virial is not None for s in self._structures)

    def __len__(self) -> int:
        return len(self._structures)

    def read(self, indices: Sequence[int]) -> list[Structure]:
        return [self._structures[i] for i in indices]


class StructureReader:
    """Reads structures of a source and finds their neighbors.

    Args:
        source: where structures come from.
        neighbors: how they are packed.
        processes: what reads the source; they measure each a share of it.
        dtype: of the packed floating-point arrays.
        cache_bytes: bound on structures and neighbor lists kept in memory between epochs.
        targets: additional labels, and weights under other names; the source gives them in ``extra`` of structures.
    """

    def __init__(
        self,
        source: Source,
        neighbors: PackedNeighbors,
        *,
        processes: Processes | None = None,
        dtype: np.dtype | type = np.float32,
        cache_bytes: int = 2**30,
        targets: Targets = NO_TARGETS,
    ) -> None:
        if len(source) == 0:
            raise UserError("the data set has no structures; check its source and split")
        self.source, self.neighbors, self.dtype = source, neighbors, np.dtype(dtype)
        self._places = getattr(source, "places", Places())
        self.targets = targets
        self._cache: dict[int, tuple[Structure, NeighborPairs]] = {}
        self._cache_left = cache_bytes
        self.sizes = self._measure(processes or OneProcess())

    def structures(self, rows: Sequence[int]) -> list[Structure]:
        return [structure for structure, _ in self._items(rows)]

    def frames(self, rows: Sequence[int]) -> str:
        """The frames at ``rows``, for messages."""
        return self._places.words(s.source_index for s in self.structures(rows))

    def _items(self, rows: Sequence[int]) -> list[tuple[Structure, NeighborPairs]]:
        missing = [int(r) for r in rows if int(r) not in self._cache]
        made = {}
        if missing:
            read = self._read(missing)
            with placed(self._places):
                made = {row: (s, self.neighbors.pairs(s)) for row, s in zip(missing, read, strict=True)}
        for row, item in made.items():
            if (size := _bytes(item)) <= self._cache_left:
                self._cache[row] = item
                self._cache_left -= size
        return [made[int(r)] if int(r) in made else self._cache[int(r)] for r in rows]

    def _read(self, rows: Sequence[int]) -> list[Structure]:
        structures = self.source.read(rows)
        if not self.targets.required:
            return structures
        where = getattr(self.source, "path", "dataset")
        places = [f"{where}: structure {row}" for row in rows]
        return [self.targets.labelled(s, place) for s, place in zip(structures, places, strict=True)]

    def _measure(self, processes: Processes) -> Sizes:
        """One pass over the source, shared by the processes, which also fills the cache.

        A list in memory may differ between processes: that of process 0 counts.
        """
        if isinstance(self.source, StructureList):
            return processes.broadcast(self._sizes(range(len(self.source))) if processes.index == 0 else None)
        parts = processes.exchange(self._sizes(share_by_work(self._work(), processes)))
        return Sizes(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _work(self) -> np.ndarray:
        """(N,) about how long each structure takes to measure: by its atoms, where the source can tell them."""
        return np.maximum(getattr(self.source, "n_atoms", np.ones(len(self.source))), 1.0)

    def _sizes(self, rows: range) -> Sizes:
        """The sizes of the structures at ``rows``."""
        atoms, pairs, neighbors = [], [], [np.zeros(0, np.int32)]
        for start in range(0, len(rows), READ_AHEAD):
            for structure, found in self._items(rows[start : start + READ_AHEAD]):
                atoms.append(len(structure))
                pairs.append(len(found.receiver))
                neighbors.append(neighbor_counts(len(structure), found).astype(np.int32))
        return Sizes(np.array(atoms, np.int64), np.array(pairs, np.int64), np.concatenate(neighbors))


def _bytes(item: tuple[Structure, NeighborPairs]) -> int:
    structure, pairs = item
    extra = sum(np.asarray(value).nbytes for value in structure.extra.values())
    return 500 + 60 * len(structure) + extra + sum(a.nbytes for a in pairs)
