"""What a training needs to know of the devices that share its batches."""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

import jax
import jax.numpy as jnp

from forgefield.data.batching import Batch
from forgefield.data.loaders import BatchLoader, LoadedBatch
from forgefield.data.prefetch import Prefetch

Item = TypeVar("Item")
Reduction = Literal["mean", "sum"]
Local = Callable[[Any, Batch], Any]
Finish = Callable[[Any, Any], Any]


class Parallelism(ABC):
    """Devices that share every batch, and the processes that they belong to.

    Also the :class:`~forgefield.data.processes.Processes` of a loader. Every process calls the same methods in the same
    order.

    Attributes:
        method: ``single``, ``jax`` or ``mpi``.
        parts: devices that share a batch, each with one part.
        local_parts: the parts of this process's devices.
        index, count: this process, counted from 0, of all processes.
    """

    method: str
    parts: int
    local_parts: range
    index: int = 0
    count: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and reports."""
        return self.index == 0

    @abstractmethod
    def exchange(self, item: Item) -> list[Item]:
        """What every process passes, in their order, on every process; anything that can be pickled."""

    @abstractmethod
    def broadcast(self, item: Item) -> Item:
        """What process 0 passes, on every process."""

    @abstractmethod
    def replicated(self, tree: Any) -> Any:
        """A copy of every array, the same on all processes, on every device."""

    @abstractmethod
    def placed(self, loaded: LoadedBatch) -> Batch:
        """The parts of a batch, each on its device; called by the thread that trains."""

    @abstractmethod
    def compiled(self, local: Local, reduction: Reduction, finish: Finish, *, donate: bool = False) -> Callable:
        """Compile ``f(state, batch)``: ``local(state, part)`` on each device, then ``finish`` on all.

        Args:
            local: gives a pytree of arrays from the state, which is the same everywhere, and a device's part.
            reduction: the mean or sum of these arrays over all devices, by one collective.
            finish: ``finish(state, reduced)`` is the result.
            donate: whether the state is consumed.
        """

    @abstractmethod
    def by_device(self, local: Local) -> Callable[[Any, Batch], Any]:
        """Compile ``local(state, part)`` on each device; the results have a leading axis over devices."""

    def batches(self, loader: BatchLoader, epoch: int, start: int = 0) -> Iterator[LoadedBatch]:
        """This process's parts of the batches of an epoch, but for the first ``start``, made ahead in a thread."""
        with Prefetch(loader.epoch(epoch, start)) as batches:
            yield from batches


def end_with_error() -> None:
    """Let an exception that nothing catches end this process at once.

    The clean-up at a normal end waits for the other processes, which wait for this one; without it mpirun, or the
    broken connection, ends them too.
    """
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        before(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)

    sys.excepthook = hook


def owned_copies(tree: Any) -> Any:
    """Copies of arrays, to be compiled.

    ``device_put`` may lend a NumPy array's memory to one or more devices, where a step that consumes its state would
    write into it; the outputs of a compiled copy are each device's own.
    """
    return jax.tree.map(jnp.copy, tree)
