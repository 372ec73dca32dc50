"""How many processes a run needs, which of them this one is, and what is its own."""

import math
import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from forgefield.config import RunConfig
from forgefield.launch.network import interface_of, is_loopback, own_address
from forgefield.launch.rank_logs import write_own

# environment of the processes that are started here
FAILURE, COORDINATOR, STARTED = "FORGEFIELD_FAILURE_FILE", "FORGEFIELD_COORDINATOR", "FORGEFIELD_STARTED"
# directory of the logs of processes that are started in a Slurm job
RANK_LOGS = "FORGEFIELD_RANK_LOGS"
# where PyTorch's processes meet, and by which interface
MEETING, GLOO = "MASTER_ADDR", "GLOO_SOCKET_IFNAME"
# by which launchers say how many processes they have started, which of all this one is, and which of those on its node
SRUN_COUNT = "SLURM_STEP_NUM_TASKS"
COUNTS = {"jax": ("OMPI_COMM_WORLD_SIZE", SRUN_COUNT), "fabric": ("WORLD_SIZE", SRUN_COUNT)}
RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK", "SLURM_PROCID")
LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK", "SLURM_LOCALID")
# and which of these are those of this process alone; Slurm's are set anew in each step
OWN = {*RANKS, *LOCAL_RANKS, "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"} - {"SLURM_PROCID", "SLURM_LOCALID"}
# seconds, see _patience: JAX's own default, and more than a training takes
LEAST_PATIENCE, FOR_EVER = 100, 10**8


def process_count(config: RunConfig) -> int:
    """How many processes a run needs: one per device with ``mpi`` and PyTorch, one per node with JAX."""
    by_device = config.backend == "fabric" or config.parallelism == "mpi"
    return config.n_devices if by_device else config.n_nodes


def is_started(config: RunConfig) -> bool:
    """Whether this process is one of several that were started together, here or by the user's own launcher."""
    return FAILURE in os.environ or any(int(os.environ.get(name, "1")) > 1 for name in COUNTS[config.backend])


def started() -> float:
    """When the run began, in seconds since the epoch, which the process that has started this one knows."""
    return float(os.environ.get(STARTED, time.time()))


def environment() -> dict[str, str]:
    """What the processes that this one starts get, without what would tell each that it is this one."""
    return {name: value for name, value in os.environ.items() if name not in OWN}


def is_child() -> bool:
    """Whether forgefield has started this process."""
    return FAILURE in os.environ


def is_first() -> bool:
    """Whether this process speaks for all, which the one that has started them does where that is forgefield."""
    return FAILURE not in os.environ and rank() == 0


def rank() -> int:
    """Which of all processes this one is."""
    return _number(RANKS) or 0


def join(config: RunConfig) -> None:
    """Make this process one of several: its share of the cores, one GPU, and JAX's connections.

    Before JAX or PyTorch is loaded. The engine PyTorch connects its processes itself.
    """
    local = _number(LOCAL_RANKS) or 0
    if COUNTS["jax"][0] in os.environ:
        # rank 0 writes into a terminal that mpirun makes, whatever its own output is: no colors in a user's log
        os.environ.setdefault("TTY_COMPATIBLE", "0")
    if RANK_LOGS in os.environ:
        # as torchrun would say it; Slurm has shared out the cores
        os.environ |= {"RANK": str(rank()), "LOCAL_RANK": str(local)}
        write_own(Path(os.environ[RANK_LOGS]), rank(), started())
    elif FAILURE in os.environ:
        _take_cores(local, process_count(config))
    if config.backend == "fabric" and config.n_nodes > 1 and MEETING in os.environ:
        _name_interface()
    if config.parallelism == "mpi":
        # all devices of the node are visible, as where the site says nothing, or only the rank's own
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", str(local)).split(",")
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[local % len(visible)].strip()
    elif COORDINATOR in os.environ:
        import jax

        _name_this_machine(os.environ[COORDINATOR])
        words = os.environ[COORDINATOR], int(os.environ["WORLD_SIZE"]), rank()
        # JAX would otherwise ask Slurm for what it is not told
        alone = {"cluster_detection_method": "deactivate", "heartbeat_timeout_seconds": _patience(config)}
        jax.distributed.initialize(*words, **alone)
    elif config.backend == "jax" and int(os.environ.get(SRUN_COUNT, "1")) > 1:
        import jax

        devices = list(range(config.devices))
        jax.distributed.initialize(local_device_ids=devices, heartbeat_timeout_seconds=_patience(config))


def _patience(config: RunConfig) -> int:
    """Seconds after which JAX ends what no longer answers, without a name: later than ``training.hang_timeout``."""
    limit = config.training.hang_timeout
    return FOR_EVER if limit is None else LEAST_PATIENCE + 2 * math.ceil(limit)


def _name_this_machine(coordinator: str) -> None:
    """Tell JAX's collectives of CPUs the address of this machine, where its name leads nowhere or back to itself."""
    with suppress(OSError):
        if not is_loopback(socket.gethostbyname(socket.gethostname())):
            return
    if (own := own_address(coordinator.rpartition(":")[0])) is None:
        return
    from jax._src.lib import _jax  # jax.distributed has no argument for it

    _jax.make_gloo_tcp_collectives = partial(_jax.make_gloo_tcp_collectives, hostname=own)


def _name_interface() -> None:
    """Tell PyTorch's collectives of CPUs which interface leads to the other nodes, if nobody has.

    They would take that of this machine's name, and the loopback interface where the name leads nowhere.
    """
    address = own_address(os.environ[MEETING])
    if address and (name := interface_of(address)):
        os.environ.setdefault(GLOO, name)


def _number(names: Sequence[str]) -> int | None:
    """The first of these that the environment has."""
    return next((int(os.environ[name]) for name in names if name in os.environ), None)


def _take_cores(index: int, count: int) -> None:
    """Stay on this process's share of the cores, if there is one for each."""
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    own = [len(cores) * i // count for i in (index, index + 1)]
    if own[1] > own[0]:
        os.sched_setaffinity(0, cores[own[0] : own[1]])
