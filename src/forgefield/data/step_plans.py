"""Which structures each of several processes computes in each step of an epoch.

Every process computes the plan of all from the sizes of the structures, the seed and the epoch alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from forgefield.data.dynamic_batches import even_batches, even_shares, relative_work
from forgefield.data.plans import Sizes, check_full_batch, epoch_order, full_batches


class Steps(NamedTuple):
    """The steps of an epoch.

    Attributes:
        rows: (n,) of structures, step by step and in each step part by part.
        ends: (steps, parts + 1) where the first part starts, and where each ends.
    """

    rows: np.ndarray
    ends: np.ndarray

    @property
    def parts(self) -> Iterator[list[np.ndarray]]:
        """The rows of all parts, step by step."""
        for ends in self.ends.tolist():
            yield [self.rows[a:b] for a, b in pairwise(ends)]


class StepPlan(Protocol):
    """How epochs are divided into steps, and steps into parts, one for each process.

    Attributes:
        batch: structures that a step is meant to have over all parts.
        limit: (see :func:`~forgefield.data.dynamic_batches.relative_work`) work that a process does at once, with more
            only for one structure alone; None for any.
    """

    batch: int
    limit: float | None

    def steps(self, epoch: int) -> Steps: ...


@dataclass(frozen=True)
class FixedSteps:
    """So many structures in each step but the last, of which each part gets as many.

    Attributes:
        sizes: of all structures.
        batch, parts: a multiple of parts, as every part is to have the same number of structures.
        seed: of the order; None: in the order of their neighbor pairs, as suits evaluation.
        drop_last: leave out an incomplete last batch.
    """

    sizes: Sizes
    batch: int
    parts: int
    seed: int | None = None
    drop_last: bool = False
    limit = None

    def __post_init__(self) -> None:
        if self.drop_last:
            check_full_batch(len(self.sizes.atoms), self.batch)

    def steps(self, epoch: int) -> Steps:
        if self.seed is None:
            order = np.argsort(self.sizes.pairs, kind="stable")
        else:
            order = epoch_order(len(self.sizes.atoms), self.seed, epoch)
        order = full_batches(order, self.batch) if self.drop_last else order
        start = np.arange(0, len(order), self.batch)[:, None]
        share, more = np.divmod(np.minimum(len(order) - start, self.batch), self.parts)
        part = np.arange(self.parts + 1)
        return Steps(order, start + share * part + np.minimum(part, more))


@dataclass(frozen=True)
class DynamicSteps:
    """As many steps as with :class:`FixedSteps`, but of about the same work, shared by work.

    Which structures make a step does not depend on the number of parts. A structure beyond what ``batch`` structures
    may need is a step of its own.

    Attributes:
        sizes: of all structures.
        batch: structures per step on average.
        parts: of each step.
        margin: by how much the work of a part may exceed that of its share of ``batch`` average structures.
        seed: of the order.
        drop_last: leave out the structures that :class:`FixedSteps` would.
    """

    sizes: Sizes
    batch: int
    parts: int
    margin: float
    seed: int = 0
    drop_last: bool = False

    def __post_init__(self) -> None:
        if self.drop_last:
            check_full_batch(len(self.sizes.atoms), self.batch)

    @property
    def limit(self) -> float:
        return self.margin * -(-self.batch // self.parts)

    def steps(self, epoch: int) -> Steps:
        order = epoch_order(len(self.sizes.atoms), self.seed, epoch)
        order = full_batches(order, self.batch) if self.drop_last else order
        work = relative_work(self.sizes)
        steps = -(-len(order) // self.batch)
        batches = even_batches(work, order, steps, self.margin * self.batch, generator(self.seed, epoch))
        return Steps(*even_shares(work, batches, self.parts, self.limit))


def generator(seed: int, epoch: int) -> np.random.Generator:
    """Random numbers beside those of :func:`~forgefield.data.plans.epoch_order`."""
    return np.random.default_rng([seed, epoch, 1])
