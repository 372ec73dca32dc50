"""The part of the doctor that may crash: imports one group of packages and tries what they are for.

Runs as ``python -m forgefield.doctor.probe GROUP``. Each finished step is a line of JSON on stdout at once, so that
what comes before a crash is known.
"""

import importlib
import json
import sys
from collections.abc import Callable

from forgefield.doctor.packages import GROUPS

MARK = "doctor: "


def emit(key: str, value: object) -> None:
    """Print one result."""
    print(MARK + json.dumps({key: value}), flush=True)


def describe(error: BaseException) -> str:
    """Return an exception as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def try_import(module: str) -> str | None:
    """Import a module; return what went wrong, or None."""
    try:
        importlib.import_module(module)
    except BaseException as error:  # a package may raise anything on import, SystemExit included
        return describe(error)
    return None


def try_jax() -> dict:
    """Compile and run a sum on one device and over all local devices."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import AxisType, PartitionSpec

    devices = jax.local_devices()
    values = jnp.arange(2.0 * len(devices))
    total = float(values.sum())
    single = float(jax.jit(jnp.sum)(values)) == total
    mesh = jax.make_mesh((len(devices),), ("data",), axis_types=(AxisType.Auto,))

    def reduce(part):
        return jax.lax.psum(part.sum(), "data")

    reduced = jax.shard_map(reduce, mesh=mesh, in_specs=PartitionSpec("data"), out_specs=PartitionSpec())
    several = len(devices) > 1 and float(jax.jit(reduced)(values)) == total
    names = [device.device_kind for device in devices]
    return {"platform": devices[0].platform, "devices": names, "single": single, "several": several}


def try_mpi() -> dict | None:
    """Sum the ranks with mpi4jax inside a compiled function; only rank 0 answers."""
    import jax
    import jax.numpy as jnp
    import mpi4jax
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    total = jax.jit(lambda x: mpi4jax.allreduce(x, op=MPI.SUM, comm=world))(jnp.ones(()) * (world.rank + 1))
    if float(total) != world.size * (world.size + 1) / 2:
        raise ArithmeticError(f"the sum over {world.size} ranks came out as {float(total)}")
    library = MPI.Get_library_version().split(",")[0]
    return {"ranks": world.size, "library": library} if world.rank == 0 else None


def try_fabric() -> dict:
    """Differentiate a product on the device that Fabric would take."""
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    matrix = torch.eye(3, device=device, requires_grad=True)
    (matrix @ matrix).sum().backward()
    if not torch.distributed.is_available():
        raise RuntimeError("this PyTorch was built without torch.distributed")
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {"platform": device.type, "devices": names}


TRIALS: dict[str, Callable[[], dict | None]] = {"jax": try_jax, "mpi": try_mpi, "fabric": try_fabric}


def main(group: str) -> None:
    """Import a group's packages, then try what they are for if all could be imported."""
    errors = {}
    for package in GROUPS[group]:
        errors[package.distribution] = try_import(package.module)
        emit("imports", errors)
    if group not in TRIALS or any(errors.values()):
        return
    try:
        answer = TRIALS[group]()
    except BaseException as error:
        emit("error", describe(error))
    else:
        if answer is not None:
            emit("trial", answer)


if __name__ == "__main__":
    main(sys.argv[1])
