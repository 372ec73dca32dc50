"""The processes that read one data set together, each its share."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

Item = TypeVar("Item")


class Processes(Protocol):
    """Processes that run the same program side by side; every one calls the same methods in the same order.

    Attributes:
        index: of this process, counted from 0.
        count: of all processes.
    """

    index: int
    count: int

    def exchange(self, item: Item) -> list[Item]:
        """What every process passes, in their order, on every process; anything that can be pickled."""
        ...

    def broadcast(self, item: Item) -> Item:
        """What process 0 passes, on every process; the others' items are ignored."""
        ...


@dataclass(frozen=True)
class OneProcess:
    """A program without others beside it."""

    index: int = 0
    count: int = 1

    def exchange(self, item: Item) -> list[Item]:
        return [item]

    def broadcast(self, item: Item) -> Item:
        return item


def share(n: int, processes: Processes) -> range:
    """The rows of ``n`` that this process looks at where each row is needed once: one contiguous part of all."""
    first, last = (n * i // processes.count for i in (processes.index, processes.index + 1))
    return range(first, last)


def share_by_work(work: np.ndarray, processes: Processes) -> range:
    """The same where rows (N,) differ in how long they take, and those that take long may all be at the end."""
    middle = np.cumsum(work) - work / 2
    inner = np.searchsorted(middle, work.sum() * np.arange(1, processes.count) / processes.count)
    bounds = [0, *inner.tolist(), len(work)]
    return range(bounds[processes.index], bounds[processes.index + 1])
