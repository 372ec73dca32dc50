"""From stored or listed structures to packed batches: order, neighbor lists, few shapes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from forgefield.data.batching import Batch, Capacity
from forgefield.data.packing import PackedNeighbors
from forgefield.data.plans import (
    batch_needs,
    check_full_batch,
    choose_capacities,
    epoch_order,
    full_batches,
    largest_capacity,
    split_batches,
)
from forgefield.data.reader import Source, StructureReader
from forgefield.errors import UserError

# of longer trainings, the shapes follow from so many epochs, and one more holds whatever may come later
PLANNED_EPOCHS = 1000


class LoadedBatch(NamedTuple):
    """A packed batch and what is in it.

    Attributes:
        parts: packed structures, one part for each device of this process, or what one device computes
            one after another.
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

    def asking(self, stop: bool) -> Self:
        """The same batch, which says whether this process asks to end the training."""
        return self._replace(parts=tuple(part._replace(stop=np.float32(stop)) for part in self.parts))


class Filled(NamedTuple):
    """Which share of the packed atoms, pairs and neighbor slots is real, not padding."""

    atoms: float
    pairs: float
    neighbors: float


class BatchLoader(StructureReader):
    """Batches of a source, epoch by epoch, packed into at most three shapes.

    Of several processes, each computes the same order and reads only the structures of its own devices.

    Args:
        source: where structures come from.
        neighbors: how they are packed.
        batch: structures per batch over all parts.
        parts: devices that share a batch, each with a contiguous part.
        local_parts: those of this process; all by default.
        seed: for shuffling; None keeps similar sizes together in the same order each epoch, as suits evaluation.
        drop_last: leave out an incomplete last batch; otherwise it is padded.
        settings: ``processes``, ``dtype``, ``cache_bytes`` and ``targets`` of
            :class:`~forgefield.data.reader.StructureReader`.
    """

    def __init__(
        self,
        source: Source,
        neighbors: PackedNeighbors,
        batch: int,
        *,
        parts: int = 1,
        local_parts: range | None = None,
        seed: int | None = None,
        drop_last: bool = False,
        **settings: Any,
    ) -> None:
        if drop_last:
            check_full_batch(len(source), batch)
        if batch % parts:
            raise UserError(f"batch {batch} cannot be shared evenly by {parts} devices; make it a multiple of {parts}")
        super().__init__(source, neighbors, **settings)
        self.batch = batch
        self.parts, self.local_parts = parts, range(parts) if local_parts is None else local_parts
        self.seed, self.drop_last = seed, drop_last
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
        return full_batches(order, self.batch) if self.drop_last else order

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

    def epoch(self, epoch: int, start: int = 0) -> Iterator[LoadedBatch]:
        """This process's parts of the packed batches of an epoch that was planned, without the first ``start``."""
        for rows in split_batches(self.order(epoch), self.batch)[start:]:
            capacity = self._capacity(self._needs(rows)[0])
            parts = np.array_split(rows, self.parts)
            packed = tuple(self._pack(parts[i], rows, capacity) for i in self.local_parts)
            yield LoadedBatch(packed, rows, tuple(len(p) for p in parts))

    def _pack(self, part: np.ndarray, rows: np.ndarray, capacity: Capacity) -> Batch:
        items = self._items(part if len(part) else rows[:1])
        if not len(part):
            # a device with nothing to do in a short last batch computes a structure of the others, with weight 0
            items = [(self.targets.absent(s), p) for s, p in items]
        structures = [s for s, _ in items]
        batch = self.neighbors.pack(structures, [p for _, p in items], capacity, self.dtype)
        return batch._replace(targets=self.targets.packed(structures, capacity.structures, self.dtype))
