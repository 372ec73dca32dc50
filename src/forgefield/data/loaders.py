"""From stored or listed structures to packed batches: order, neighbor lists, few shapes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from ase.data import chemical_symbols

from forgefield.data.batching import Batch, Capacity, pack_graph, pack_labels
from forgefield.data.neighbors import NeighborPairs, neighbor_counts, neighbor_pairs
from forgefield.data.plans import Sizes, batch_needs, choose_capacities, epoch_order, split_batches
from forgefield.data.structures import Structure
from forgefield.errors import UserError

READ_AHEAD = 256


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


@dataclass(frozen=True)
class PackedNeighbors:
    """How structures become packed batches with neighbor lists.

    Attributes:
        cutoff: Å; pairs of atoms closer than this are listed.
        elements: atomic numbers in the order of the model's species index.
        energy_shifts: eV by atomic number, subtracted from energy labels in float64; none without it.
    """

    cutoff: float
    elements: tuple[int, ...]
    energy_shifts: Mapping[int, float] = field(default_factory=dict)

    @property
    def shifts(self) -> dict[int, float]:
        """The energy shift of every element, eV."""
        return {z: self.energy_shifts.get(z, 0.0) for z in self.elements}

    def pairs(self, structure: Structure) -> NeighborPairs:
        """The neighbor list of one structure.

        Raises:
            UserError: the structure has an element that is not among ``elements``.
        """
        unknown = sorted(set(structure.numbers.tolist()) - set(self.elements))
        if unknown:
            raise UserError(
                f"frame {structure.source_index}: the model does not know {_symbols(unknown)} (it knows "
                f"{_symbols(self.elements)}); leave such frames out or choose a model for these elements"
            )
        return neighbor_pairs(structure, self.cutoff)

    def pack(
        self,
        structures: Sequence[Structure],
        pairs: Sequence[NeighborPairs],
        capacity: Capacity,
        dtype: np.dtype,
    ) -> Batch:
        """Pack structures with their neighbor lists and labels into arrays of the given capacity."""
        graph = pack_graph(structures, pairs, self.elements, self.cutoff, capacity, dtype)
        return Batch(graph, pack_labels(structures, self.shifts, capacity, dtype))


class LoadedBatch(NamedTuple):
    """A packed batch and what is in it.

    Attributes:
        batch: arrays; with several parts each has a leading axis of that length.
        rows: (b,) row numbers of the structures in their source.
        part_lengths: the number of structures in each part.
    """

    batch: Batch
    rows: np.ndarray
    part_lengths: tuple[int, ...]


class Filled(NamedTuple):
    """Which share of the packed atoms, pairs and neighbor slots is real, not padding."""

    atoms: float
    pairs: float
    neighbors: float


class BatchLoader:
    """Batches of a source, epoch by epoch, packed into at most three shapes.

    Args:
        source: where structures come from.
        neighbors: how they are packed.
        batch: structures per batch over all parts.
        parts: devices that share a batch, each with its part along a new leading axis; None for one device, no axis.
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
        parts: int | None = None,
        seed: int | None = None,
        drop_last: bool = False,
        dtype: np.dtype | type = np.float32,
        cache_bytes: int = 2**30,
    ) -> None:
        if len(source) == 0:
            raise UserError("the data set has no structures; check its source and split")
        if drop_last and len(source) < batch:
            raise UserError(f"drop_last leaves nothing of {len(source)} structures with batch {batch}; lower batch")
        if batch % (parts or 1):
            raise UserError(f"batch {batch} cannot be shared evenly by {parts} devices; make it a multiple of {parts}")
        self.source, self.neighbors, self.batch, self.parts = source, neighbors, batch, parts
        self.seed, self.drop_last, self.dtype = seed, drop_last, np.dtype(dtype)
        self._cache: dict[int, tuple[Structure, NeighborPairs]] = {}
        self._cache_left = cache_bytes
        self.sizes = self._measure()
        self.capacities: list[Capacity] = []
        self.filled: Filled | None = None

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
        distinct = epochs if self.seed is not None else 1
        real = np.zeros(3)
        for epoch in range(distinct):
            order = self.order(epoch)
            needs, number = np.unique(self._needs(order), axis=0, return_counts=True)
            counts.update(dict(zip(map(tuple, needs.tolist()), number.tolist(), strict=True)))
            real += [self.sizes.atoms[order].sum(), self.sizes.pairs[order].sum(), 2 * self.sizes.pairs[order].sum()]
        scaled = Counter({need: number * epochs // distinct for need, number in counts.items()})
        self.capacities = choose_capacities(scaled, self.batch // (self.parts or 1))
        shapes = {need: self._capacity(need) for need in counts}
        packed = sum(n * np.array([*shapes[k][1:3], shapes[k].atoms * shapes[k].neighbors]) for k, n in counts.items())
        self.filled = Filled(*(real / (packed * (self.parts or 1))).tolist())

    def _capacity(self, need: Sequence[int]) -> Capacity:
        """The smallest planned shape that holds a batch."""
        return next(c for c in self.capacities if c.holds(Capacity(0, *need)))

    def _needs(self, order: np.ndarray) -> np.ndarray:
        return batch_needs(self.sizes, order, self.batch, self.parts or 1)

    def epoch(self, epoch: int) -> Iterator[LoadedBatch]:
        """The packed batches of an epoch that was planned."""
        for rows in split_batches(self.order(epoch), self.batch):
            capacity = self._capacity(self._needs(rows)[0])
            parts = np.array_split(rows, self.parts or 1)
            packed = [self._pack(part, rows, capacity) for part in parts]
            batch = packed[0] if self.parts is None else _stacked(packed)
            yield LoadedBatch(batch, rows, tuple(len(p) for p in parts))

    def structures(self, rows: Sequence[int]) -> list[Structure]:
        return [structure for structure, _ in self._items(rows)]

    def _pack(self, part: np.ndarray, rows: np.ndarray, capacity: Capacity) -> Batch:
        items = self._items(part if len(part) else rows[:1])
        batch = self.neighbors.pack([s for s, _ in items], [p for _, p in items], capacity, self.dtype)
        if len(part):
            return batch
        # a device with nothing to do in a short last batch computes a structure of the others, with weight 0
        return batch._replace(labels=pack_labels([], {}, capacity, self.dtype))

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

    def _measure(self) -> Sizes:
        """One pass over the source, which also fills the cache."""
        counts = []
        for start in range(0, len(self.source), READ_AHEAD):
            rows = range(start, min(start + READ_AHEAD, len(self.source)))
            for structure, pairs in self._items(rows):
                most = int(neighbor_counts(len(structure), pairs).max(initial=0))
                counts.append((len(structure), len(pairs.receiver), most))
        return Sizes(*np.array(counts, dtype=np.int64).T)


def _stacked(batches: Sequence[Batch]) -> Batch:
    """Join batches along a new leading axis, array by array."""
    return Batch(
        *(type(x[0])(*(np.stack(arrays) for arrays in zip(*x, strict=True))) for x in zip(*batches, strict=True))
    )


def _bytes(item: tuple[Structure, NeighborPairs]) -> int:
    structure, pairs = item
    return 500 + 60 * len(structure) + sum(a.nbytes for a in pairs)


def _symbols(numbers: Sequence[int]) -> str:
    return ", ".join(chemical_symbols[z] for z in numbers)
