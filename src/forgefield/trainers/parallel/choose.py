"""Which method shares the batches: asked for, or found from what is running."""

import os
import sys
from importlib import import_module

import jax
from jax.sharding import Mesh

from forgefield.errors import UserError
from forgefield.trainers.parallel.base import Parallelism
from forgefield.trainers.parallel.jax_mesh import JaxMesh, data_mesh
from forgefield.trainers.parallel.single import SingleDevice

METHODS = ("auto", "single", "mpi", "jax")
# set for each rank by the launchers of Open MPI, and of MPICH and its kin
RANK_COUNTS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def choose_parallelism(method: str = "auto", mesh: Mesh | None = None) -> Parallelism:
    """The devices that share batches.

    Args:
        method: ``single`` (this process alone), ``mpi``, ``jax``, or ``auto``: what is found first of processes of
            ``jax.distributed``, several MPI ranks, several local devices, one device.
        mesh: a one-dimensional mesh named ``data``, for some of the devices; only with ``jax``.

    Raises:
        UserError: the method is unknown, cannot work here, or does not go with ``mesh`` or with what is running.
    """
    if method not in METHODS:
        raise UserError(f"parallelism: {method!r} is not available; choose one of {', '.join(METHODS)}")
    distributed, ranks = jax.distributed.is_initialized(), _mpi_ranks()
    if distributed and ranks > 1 and "mpi4py.MPI" in sys.modules:
        raise UserError(
            f"parallelism: MPI with {ranks} ranks and jax.distributed are both active; initialize only one of them"
        )
    if mesh is not None:
        if method not in ("auto", "jax"):
            raise UserError(f"mesh: it goes with parallelism 'jax', not {method!r}; leave one out")
        return JaxMesh(mesh)
    if method == "auto":
        method = _found(distributed, ranks)
    return _made(method, distributed, ranks)


def _found(distributed: bool, ranks: int) -> str:
    if distributed:
        return "jax"
    if ranks > 1:
        return "mpi"
    return "jax" if len(jax.local_devices()) > 1 else "single"


def _made(method: str, distributed: bool, ranks: int) -> Parallelism:
    if method == "mpi":
        if distributed:
            raise UserError("parallelism: mpi, but jax.distributed is active; do not initialize it, or choose jax")
        return import_module("forgefield.trainers.parallel.mpi_ranks").MpiRanks()
    if method == "jax":
        if ranks > 1 and not distributed:
            raise UserError(
                f"parallelism: jax, but {ranks} MPI ranks run without jax.distributed; call "
                "jax.distributed.initialize first, or choose mpi"
            )
        return JaxMesh(data_mesh())
    return SingleDevice()


def _mpi_ranks() -> int:
    """The number of MPI ranks; mpi4py is asked only where it is loaded or a launcher has started several."""
    announced = max((int(os.environ[name]) for name in RANK_COUNTS if os.environ.get(name, "").isdigit()), default=1)
    if "mpi4py.MPI" in sys.modules:
        mpi = sys.modules["mpi4py.MPI"]
        return mpi.COMM_WORLD.size if mpi.Is_initialized() and not mpi.Is_finalized() else 1
    return announced
