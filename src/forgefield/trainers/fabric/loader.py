"""Batches for PyTorch: the steps of a plan, of which each process reads and packs its own part."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from forgefield.data.batching import Capacity
from forgefield.data.dynamic_batches import relative_work, within_limit
from forgefield.data.loaders import LoadedBatch
from forgefield.data.packing import PackedNeighbors
from forgefield.data.plans import Sizes
from forgefield.data.processes import Processes
from forgefield.data.reader import Source, StructureReader
from forgefield.data.step_plans import StepPlan


class StepLoader(StructureReader):
    """Batches of a source, epoch by epoch, for one of several processes.

    Args:
        source: where structures come from.
        neighbors: how they are packed.
        plan: makes the plan once the sizes are known; a part for each process.
        processes: all of them.
        settings: see :class:`~forgefield.data.reader.StructureReader`.

    Attributes:
        batch: structures that a step is meant to have over all processes.
    """

    def __init__(
        self,
        source: Source,
        neighbors: PackedNeighbors,
        plan: Callable[[Sizes], StepPlan],
        processes: Processes,
        **settings: Any,
    ) -> None:
        super().__init__(source, neighbors, processes=processes, **settings)
        self._plan, self._part = plan(self.sizes), processes.index
        self.batch = self._plan.batch
        self._work = relative_work(self.sizes)
        self._length = len(self._plan.steps(0).ends)

    def __len__(self) -> int:
        """Steps of the first epoch; there are hardly more or fewer in another."""
        return self._length

    def plan(self, epochs: int) -> None:
        """Nothing is padded: there are no shapes to choose."""

    def epoch(self, epoch: int, start: int = 0) -> Iterator[LoadedBatch]:
        """What this process computes, step by step, without the first ``start``.

        The ``parts`` of a step are its batches within the limit: mostly one, none where the step has too few
        structures for all processes.
        """
        for parts in islice(self._plan.steps(epoch).parts, start, None):
            packed = tuple(map(self._packed, self._passes(parts[self._part])))
            yield LoadedBatch(packed, np.concatenate(parts), tuple(map(len, parts)))

    def _passes(self, rows: np.ndarray) -> list[np.ndarray]:
        if self._plan.limit is None:
            return [rows] if len(rows) else []
        return within_limit(self._work, rows, self._plan.limit)

    def _packed(self, rows: Sequence[int]) -> Any:
        structures, pairs = zip(*self._items(rows), strict=True)
        exact = Capacity(len(rows), int(self.sizes.atoms[rows].sum()), int(self.sizes.pairs[rows].sum()), 0)
        return self.neighbors.pack(structures, pairs, exact, self.dtype)
