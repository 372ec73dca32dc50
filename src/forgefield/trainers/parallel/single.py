"""One process with one device."""

from collections.abc import Callable
from typing import Any

import jax

from forgefield.data.batching import Batch
from forgefield.data.loaders import LoadedBatch
from forgefield.trainers.parallel.base import Item, Parallelism, Reduction, owned_copies


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
        return jax.device_put(loaded.batch)

    def reduced(self, local: Callable[[Any, Batch], Any], reduction: Reduction) -> Callable[[Any, Batch], Any]:
        return local

    def by_device(self, local: Callable[[Any, Batch], Any]) -> Callable[[Any, Batch], Any]:
        return lambda params, batch: jax.tree.map(lambda x: x[None], local(params, batch))
