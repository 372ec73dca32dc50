"""One process with one device."""

from collections.abc import Callable
from typing import Any

import jax

from forgefield.data.batching import Batch
from forgefield.data.loaders import LoadedBatch
from forgefield.trainers.parallel.base import Finish, Item, Local, Parallelism, Reduction, owned_copies


class SingleDevice(Parallelism):
    """The first local device does everything."""

    method, parts, local_parts = "single", 1, range(1)

    def exchange(self, item: Item) -> list[Item]:
        return [item]

    def broadcast(self, item: Item) -> Item:
        return item

    def replicated(self, tree: Any) -> Any:
        return jax.jit(owned_copies)(tree)

    def placed(self, loaded: LoadedBatch) -> Batch:
        # with arrays that are still being copied, a CPU's step would run on another thread, whose memory is not kept
        return jax.block_until_ready(jax.device_put(loaded.batch))

    def compiled(self, local: Local, reduction: Reduction, finish: Finish, *, donate: bool = False) -> Callable:
        def whole(state: Any, batch: Batch) -> Any:
            return finish(state, local(state, batch))

        return jax.jit(whole, donate_argnums=0 if donate else ())

    def by_device(self, local: Local) -> Callable[[Any, Batch], Any]:
        return jax.jit(lambda state, batch: jax.tree.map(lambda x: x[None], local(state, batch)))
