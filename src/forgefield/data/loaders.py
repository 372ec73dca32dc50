"""From stored or listed structures to packed batches: order, neighbor lists, few shapes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple, Protocol, Self

import numpy as np

from forgefield.data.batching import Batch, Capacity
from forgefield.data.neighbors import NeighborPairs, neighbor_counts
from forgefield.data.packing import PackedNeighbors
from forgefield.data.plans import (
    Sizes,
    batch_needs,
    choose_capacities,
    epoch_order,
    largest_capacity,
    split_batches,
)
from forgefield.data.processes import OneProcess, Processes, share
from forgefield.data.structures import Structure
from forgefield.errors import UserError

READ_AHEAD = 256
# of longer trainings, the shapes follow from so many epochs, and one more holds whatever may come later
PLANNED_EPOCHS = 1000


class Source(Protocol):
    """Where structures (eV, Å) come from, such as an open ``Store``."""

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


class LoadedBatch(NamedTuple):
    """A packed batch and what is in it.

    Attributes:
        parts: packed structures, one part for each device of this process.
        rows: (b,) row numbers of the structures of all parts in their source.
        part_lengths: the number of structures in each part, those of other processes included.
    """

    parts: tuple[Batch, ...]
    rows: np.ndarray
    part_lengths: tuple[int, ...]

    @property
    def batch(self) -> Batch:
        """The part of a process with one device."""
        (part,) = self.parts
        return part


class Filled(NamedTuple):
    """Which share of the packed atoms, pairs and neighbor slots is real, not padding."""

    atoms: float
    pairs: float
    neighbors: float


class BatchLoader:
    """Batches of a source, epoch by epoch, packed into at most three shapes.

    Of several processes, each computes the same order and reads only the structures of its own devices.

    Args:
        source: where structures come from.
        neighbors: how they are packed.
        batch: structures per batch over all parts.
        parts: devices that share a batch, each with a contiguous part.
        local_parts: those of this process; all by default.
        processes: what reads the source; they measure each a share of it.
        seed: for shuffling; None keeps similar sizes together in the same order each epoch, as suits evaluation.
        drop_last: leave out an incomplete last batch; otherwise it is padded.
        dtype: of the packed floating-point arrays.
        cache_bytes: bound on structures and neighbor lists kept in memory between epochs.
    """

    def __init__(
        self,
        source: Source,
        neighbors: PackedNeighbors,
        batch: int,
        *,
        parts: int = 1,
        local_parts: range | None = None,
        processes: Processes | None = None,
        seed: int | None = None,
        drop_last: bool = False,
        dtype: np.dtype | type = np.float32,
        cache_bytes: int = 2**30,
    ) -> None:
        if len(source) == 0:
            raise UserError("the data set has no structures; check its source and split")
        if drop_last and len(source) < batch:
            raise UserError(f"drop_last leaves nothing of {len(source)} structures with batch {batch}; lower batch")
        if batch % parts:
            raise UserError(f"batch {batch} cannot be shared evenly by {parts} devices; make it a multiple of {parts}")
        self.source, self.neighbors, self.batch = source, neighbors, batch
        self.parts, self.local_parts = parts, range(parts) if local_parts is None else local_parts
        self.seed, self.drop_last, self.dtype = seed, drop_last, np.dtype(dtype)
        self._cache: dict[int, tuple[Structure, NeighborPairs]] = {}
        self._cache_left = cache_bytes
        self.sizes = self._measure(processes or OneProcess())
        self.capacities: list[Capacity] = []
        self.filled: Filled | None = None

    def of_all_parts(self) -> Self:
        """The same batches with the parts of all processes."""
        other = copy(self)
        other.local_parts = range(self.parts)
        return other

    def __len__(self) -> int:
        """Batches per epoch."""
        return len(split_batches(self.order(0), self.batch))

    def order(self, epoch: int) -> np.ndarray:
        """The row numbers of all structures of an epoch, batch after batch."""
        if self.seed is None:
            return np.argsort(self.sizes.pairs, kind="stable")
        order = epoch_order(len(self.source), self.seed, epoch)
        return order[: len(order) - len(order) % self.batch] if self.drop_last else order

    def plan(self, epochs: int) -> None:
        """Choose the shapes for epochs 0 to ``epochs - 1``, so that a training compiles few functions."""
        counts: Counter[tuple[int, int, int]] = Counter()
        distinct = min(epochs, PLANNED_EPOCHS) if self.seed is not None else 1
        real = np.zeros(3)
        for epoch in range(distinct):
            order = self.order(epoch)
            needs, number = np.unique(self._needs(order), axis=0, return_counts=True)
            counts.update(dict(zip(map(tuple, needs.tolist()), number.tolist(), strict=True)))
            real += [self.sizes.atoms[order].sum(), self.sizes.pairs[order].sum(), 2 * self.sizes.pairs[order].sum()]
        scaled = Counter({need: number * epochs // distinct for need, number in counts.items()})
        self.capacities = choose_capacities(scaled, self.batch // self.parts)
        if self.seed is not None and distinct < epochs:
            self.capacities.append(largest_capacity(self.sizes, self.batch // self.parts))
        shapes = {need: self._capacity(need) for need in counts}
        packed = sum(n * np.array([*shapes[k][1:3], shapes[k].slots]) for k, n in counts.items())
        self.filled = Filled(*(real / (packed * self.parts)).tolist())

    def _capacity(self, need: Sequence[int]) -> Capacity:
        """The smallest planned shape that holds a batch."""
        return next(c for c in self.capacities if c.holds(Capacity(0, *need)))

    def _needs(self, order: np.ndarray) -> np.ndarray:
        return batch_needs(self.sizes, order, self.batch, self.parts)

    def epoch(self, epoch: int) -> Iterator[LoadedBatch]:
        """This process's parts of the packed batches of an epoch that was planned."""
        for rows in split_batches(self.order(epoch), self.batch):
            capacity = self._capacity(self._needs(rows)[0])
            parts = np.array_split(rows, self.parts)
            packed = tuple(self._pack(parts[i], rows, capacity) for i in self.local_parts)
            yield LoadedBatch(packed, rows, tuple(len(p) for p in parts))

    def structures(self, rows: Sequence[int]) -> list[Structure]:
        return [structure for structure, _ in self._items(rows)]

    def frames(self, rows: Sequence[int]) -> list[int]:
        """The numbers, in their source, of the frames at ``rows``, ascending."""
        return sorted(s.source_index for s in self.structures(rows))

    def _pack(self, part: np.ndarray, rows: np.ndarray, capacity: Capacity) -> Batch:
        items = self._items(part if len(part) else rows[:1])
        if not len(part):
            # a device with nothing to do in a short last batch computes a structure of the others, with weight 0
            items = [(replace(s, energy=None, forces=None, virial=None), p) for s, p in items]
        return self.neighbors.pack([s for s, _ in items], [p for _, p in items], capacity, self.dtype)

    def _items(self, rows: Sequence[int]) -> list[tuple[Structure, NeighborPairs]]:
        missing = [int(r) for r in rows if int(r) not in self._cache]
        made = {}
        if missing:
            made = {r: (s, self.neighbors.pairs(s)) for r, s in zip(missing, self.source.read(missing), strict=True)}
        for row, item in made.items():
            if (size := _bytes(item)) <= self._cache_left:
                self._cache[row] = item
                self._cache_left -= size
        return [made[int(r)] if int(r) in made else self._cache[int(r)] for r in rows]

    def _measure(self, processes: Processes) -> Sizes:
        """One pass over the source, shared by the processes, which also fills the cache.

        A list in memory may differ between processes: that of process 0 counts.
        """
        if isinstance(self.source, StructureList):
            return processes.broadcast(self._sizes(range(len(self.source))) if processes.index == 0 else None)
        parts = processes.exchange(self._sizes(share(len(self.source), processes)))
        return Sizes(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

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
    return 500 + 60 * len(structure) + sum(a.nbytes for a in pairs)
