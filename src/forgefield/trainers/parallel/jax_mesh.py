"""JAX's own collectives over the devices of one process, or of all processes of ``jax.distributed``."""

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.experimental import multihost_utils
from jax.flatten_util import ravel_pytree
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from forgefield.data.batching import Batch
from forgefield.data.loaders import LoadedBatch
from forgefield.errors import UserError
from forgefield.trainers.parallel.base import (
    Finish,
    Item,
    Local,
    Parallelism,
    Reduction,
    end_with_error,
    owned_copies,
)

AXIS = "data"
REDUCTIONS = {"mean": jax.lax.pmean, "sum": jax.lax.psum}


def data_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:
    """A one-dimensional mesh over ``devices``, by default all of all processes, along whose axis batches are shared."""
    chosen = np.array(jax.devices() if devices is None else devices)
    return Mesh(chosen, (AXIS,), axis_types=(AxisType.Auto,))


class JaxMesh(Parallelism):
    """Parameters on all devices of a mesh, batches sharded along it.

    Raises:
        UserError: the mesh has another axis, or leaves out a process, which could then not follow.
    """

    method = "jax"

    def __init__(self, mesh: Mesh) -> None:
        if mesh.axis_names != (AXIS,):
            raise UserError(f"mesh: one axis named {AXIS!r} is expected, found {', '.join(mesh.axis_names)}")
        owners = [device.process_index for device in mesh.devices.flat]
        if owners != sorted(owners) or set(owners) != set(range(jax.process_count())):
            raise UserError("mesh: all processes must be in it, the devices of each side by side; use data_mesh()")
        self.mesh, self.parts = mesh, mesh.size
        self.index, self.count = jax.process_index(), jax.process_count()
        first = owners.index(self.index)
        self.local_parts = range(first, first + owners.count(self.index))
        if self.count > 1:
            end_with_error()
        self._replicated = NamedSharding(mesh, PartitionSpec())
        self._sharded = NamedSharding(mesh, PartitionSpec(AXIS))

    def exchange(self, item: Item) -> list[Item]:
        if self.count == 1:
            return [item]
        content = np.frombuffer(pickle.dumps(item), np.uint8)
        lengths = multihost_utils.process_allgather(np.int32(len(content)))
        padded = np.zeros(lengths.max(), np.uint8)
        padded[: len(content)] = content
        everyone = np.asarray(multihost_utils.process_allgather(padded))
        return [pickle.loads(row[:length].tobytes()) for row, length in zip(everyone, lengths, strict=True)]

    def broadcast(self, item: Item) -> Item:
        return self.exchange(item if self.is_main else None)[0]

    def replicated(self, tree: Any) -> Any:
        return jax.jit(owned_copies, out_shardings=self._replicated)(tree)

    def placed(self, loaded: LoadedBatch) -> Batch:
        devices = self.mesh.devices.flat[self.local_parts.start : self.local_parts.stop]

        def join(*arrays: np.ndarray) -> Array:
            shards = [jax.device_put(a[None], device) for a, device in zip(arrays, devices, strict=True)]
            shape = (self.parts, *arrays[0].shape)
            return jax.make_array_from_single_device_arrays(shape, self._sharded, shards)

        # with arrays that are still being copied, a CPU's step would run on another thread, whose memory is not kept
        return jax.block_until_ready(jax.tree.map(join, *loaded.parts))

    def compiled(self, local: Local, reduction: Reduction, finish: Finish, *, donate: bool = False) -> Callable:
        def on_device(state: Any, batch: Batch) -> Any:
            flat, restore = ravel_pytree(local(state, _own(batch)))
            return restore(REDUCTIONS[reduction](flat, AXIS))

        reduced = self._over_devices(on_device, PartitionSpec())

        def whole(state: Any, batch: Batch) -> Any:
            return finish(state, reduced(state, batch))

        return jax.jit(whole, donate_argnums=0 if donate else ())

    def by_device(self, local: Local) -> Callable[[Any, Batch], Any]:
        def on_device(state: Any, batch: Batch) -> Any:
            return jax.tree.map(lambda x: x[None], local(state, _own(batch)))

        return jax.jit(self._over_devices(on_device, PartitionSpec(AXIS)))

    def _over_devices(self, on_device: Callable, results: PartitionSpec) -> Callable:
        # check_vma=False: gradients stay those of the local loss until the explicit reduction, also through custom
        # kernels that do not tell along which mesh axes their cotangents vary
        return jax.shard_map(
            on_device,
            mesh=self.mesh,
            in_specs=(PartitionSpec(), PartitionSpec(AXIS)),
            out_specs=results,
            check_vma=False,
        )


def _own(batch: Batch) -> Batch:
    """A device's part, without the axis over devices."""
    return jax.tree.map(lambda x: x[0], batch)
