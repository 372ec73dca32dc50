"""Several MPI processes, each with one device; mpi4jax reduces inside compiled functions.

mpi4py is imported when ranks are first asked for, mpi4jax only where several of them reduce something.
"""

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
from jax.flatten_util import ravel_pytree
from packaging.version import Version

from forgefield.data.loaders import BatchLoader, LoadedBatch
from forgefield.data.reader import StructureList
from forgefield.errors import UserError
from forgefield.trainers.parallel.base import Finish, Item, Local, Reduction, end_with_error
from forgefield.trainers.parallel.single import SingleDevice

LEAST_MPI4JAX = Version("0.9.0.post1")


class MpiRanks(SingleDevice):
    """The ranks of MPI's world.

    Raises:
        UserError: a package is missing or too old, or this rank sees more than one device.
    """

    method = "mpi"

    def __init__(self) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise UserError(f"parallelism: mpi needs mpi4py ({error}); pip install 'forgefield[mpi]'") from None
        # a communicator of our own: messages of other libraries cannot be taken for ours
        self._comm = MPI.COMM_WORLD.Dup()
        self.index, self.count = self._comm.rank, self._comm.size
        self.parts, self.local_parts = self.count, range(self.index, self.index + 1)
        if (seen := len(jax.local_devices())) > 1:
            raise UserError(
                f"parallelism: MPI rank {self.index} sees {seen} devices, expected one; show each rank its own, "
                "as in CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK"
            )
        self._sum = None
        if self.count > 1:
            self._sum = _compiled_sum(MPI)
            end_with_error()

    def exchange(self, item: Item) -> list[Item]:
        return self._comm.allgather(item)

    def broadcast(self, item: Item) -> Item:
        return self._comm.bcast(item)

    def compiled(self, local: Local, reduction: Reduction, finish: Finish, *, donate: bool = False) -> Callable:
        if self._sum is None:
            return super().compiled(local, reduction, finish, donate=donate)

        def on_all(state: Any, found: Any) -> Any:
            flat, restore = ravel_pytree(found)
            total = self._sum(flat)
            return finish(state, restore(total / self.count if reduction == "mean" else total))

        # two functions: JAX keeps none on disk that holds a communicator, and the model's is slow to compile
        own, together = jax.jit(local), jax.jit(on_all, donate_argnums=0 if donate else ())
        return lambda state, batch: together(state, own(state, batch))

    def batches(self, loader: BatchLoader, epoch: int, start: int = 0) -> Iterator[LoadedBatch]:
        if isinstance(loader.source, StructureList):
            yield from self._sent_by_rank_0(loader, epoch, start)
        else:
            yield from super().batches(loader, epoch, start)

    def _sent_by_rank_0(self, loader: BatchLoader, epoch: int, start: int) -> Iterator[LoadedBatch]:
        """Batches in memory, of which only rank 0's count; each rank receives its part."""
        ahead = super().batches(loader.of_all_parts(), epoch, start) if self.is_main else None
        for _ in range(start, len(loader)):
            loaded = next(ahead) if self.is_main else None
            about = self._comm.bcast(loaded and loaded._replace(parts=()))
            part = self._comm.scatter(loaded and loaded.parts)
            yield about._replace(parts=(part,))


def _compiled_sum(mpi: Any) -> Callable[[jax.Array], jax.Array]:
    """mpi4jax's allreduce on a communicator that mpi4py does not use."""
    try:
        found = version("mpi4jax")
    except PackageNotFoundError:
        raise UserError(f"parallelism: mpi needs mpi4jax; pip install 'mpi4jax>={LEAST_MPI4JAX}'") from None
    if Version(found) < LEAST_MPI4JAX:
        raise UserError(
            f"parallelism: mpi needs mpi4jax {LEAST_MPI4JAX} or newer, found {found}; pip install -U mpi4jax"
        )
    try:
        import mpi4jax
    except Exception as error:  # it may be built for another JAX or MPI, and raise whatever it likes
        raise UserError(
            f"parallelism: mpi4jax cannot be imported ({' '.join(str(error).split())}); build it again"
        ) from None
    comm = mpi.COMM_WORLD.Dup()
    return lambda x: mpi4jax.allreduce(x, op=mpi.SUM, comm=comm)
