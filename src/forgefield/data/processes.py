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


def share(n: int, processes: Processes, work: np.ndarray | None = None) -> range:
    """The rows of ``n`` that this process looks at where each row is needed once: one contiguous part of all.

    Args:
        n: rows.
        processes: those that share them.
        work: (n,) what each row takes, at least 1, of which every process gets about as much; the same by default.
    """
    done = np.arange(n + 1) if work is None else np.concatenate([[0], np.cumsum(work)])
    first, last = (
        int(np.searchsorted(done, done[-1] * i // processes.count)) for i in (processes.index, processes.index + 1)
    )
    return range(first, last)
