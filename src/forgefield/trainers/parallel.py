"""Which devices share a batch, and where arrays go."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from forgefield.errors import UserError

METHODS = ("auto", "single", "jax")
AXIS = "data"


def data_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:
    """A one-dimensional mesh over ``devices`` (by default all local ones), along whose axis batches are shared."""
    devices = jax.local_devices() if devices is None else devices
    return jax.make_mesh((len(devices),), (AXIS,), axis_types=(AxisType.Auto,), devices=devices)


def choose_mesh(parallelism: str, mesh: Mesh | None = None) -> Mesh | None:
    """The mesh of a parallel method; None for one device.

    Raises:
        UserError: the method is unknown, or ``mesh`` does not go with it.
    """
    if parallelism not in METHODS:
        raise UserError(f"parallelism: {parallelism!r} is not available; choose one of {', '.join(METHODS)}")
    if mesh is not None:
        if parallelism == "single" or mesh.axis_names != (AXIS,):
            raise UserError(f"mesh: give a one-dimensional mesh named {AXIS!r} with parallelism 'jax', or no mesh")
        return mesh
    if parallelism == "single" or (parallelism == "auto" and len(jax.local_devices()) == 1):
        return None
    return data_mesh()


def replicated(tree: Any, mesh: Mesh | None) -> Any:
    """Put a copy of every array on every device of the mesh, or on the one device."""
    place = None if mesh is None else NamedSharding(mesh, PartitionSpec())
    # device_put may lend a NumPy array's memory to one or more devices, where a step that consumes its state would
    # write into it; the outputs of a compiled copy are each device's own
    return jax.jit(lambda tree: jax.tree.map(jnp.copy, tree), out_shardings=place)(tree)


def sharded(tree: Any, mesh: Mesh | None) -> Any:
    """Put each slice of the leading axis on its device of the mesh; without a mesh, all on the one device."""
    if mesh is None:
        return jax.device_put(tree)
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec(AXIS)))
