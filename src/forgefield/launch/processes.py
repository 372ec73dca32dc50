"""How many processes a run needs, which of them this one is, and what is its own."""

import math
import os
import sys
import time
from collections.abc import Sequence

from forgefield.config import RunConfig
from forgefield.errors import UserError

# environment of the processes that are started here
FAILURE, COORDINATOR, STARTED = "FORGEFIELD_FAILURE_FILE", "FORGEFIELD_COORDINATOR", "FORGEFIELD_STARTED"
# by which launchers say how many processes they have started, which of all this one is, and which of those on its node
SRUN_COUNT = "SLURM_STEP_NUM_TASKS"
COUNTS = {"jax": ("OMPI_COMM_WORLD_SIZE", SRUN_COUNT), "fabric": ("WORLD_SIZE", SRUN_COUNT)}
RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK", "SLURM_PROCID")
LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK", "SLURM_LOCALID")
# how many nodes a Slurm job has, in which srun starts processes
JOB_NODES = "SLURM_JOB_NUM_NODES"
# more would spend their time waiting for each other
MOST_PER_CORE = 4
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


def is_child() -> bool:
    """Whether forgefield has started this process."""
    return FAILURE in os.environ


def is_first() -> bool:
    """Whether this process speaks for all, which the one that has started them does where that is forgefield."""
    return FAILURE not in os.environ and _number(RANKS) in (None, 0)


def require_here(config: RunConfig) -> None:
    """Refuse to leave a job's other nodes unused, and far more devices than this machine has CPU cores."""
    if config.n_nodes > 1 and int(os.environ.get(JOB_NODES, "1")) > 1:
        raise UserError(f"n_nodes: {config.n_nodes} nodes are asked for, but this is one process; {_launcher(config)}")
    if config.n_nodes > 1:
        line = f"n_nodes: this is no job of several nodes, so what {config.n_nodes} would do is done on this machine"
        print(line, file=sys.stderr, flush=True)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if (count := config.n_devices) > (most := MOST_PER_CORE * cores):
        raise UserError(f"devices: {count} are asked for on {cores} CPU cores; expected at most {most}")


def _launcher(config: RunConfig) -> str:
    """How to start a run on all of its nodes."""
    nodes, devices = config.n_nodes, config.devices
    tasks = devices if config.backend == "fabric" else 1
    words = f"srun --nodes {nodes} --ntasks-per-node {tasks}"
    if config.parallelism == "mpi":
        words = f"mpirun -n {config.n_devices} --map-by ppr:{devices}:node"
    return f"start it by `{words} forgefield ...`, or write n_nodes=1"


def join(config: RunConfig) -> None:
    """Make this process one of several: its share of the cores, one GPU, and JAX's connections.

    Before JAX or PyTorch is loaded. The engine PyTorch connects its processes itself.
    """
    rank = _number(LOCAL_RANKS) or 0
    if FAILURE in os.environ:
        _take_cores(rank, process_count(config))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if config.parallelism == "mpi":
        os.environ["CUDA_VISIBLE_DEVICES"] = visible.split(",")[rank] if "," in visible else visible or str(rank)
    elif COORDINATOR in os.environ:
        import jax

        words = os.environ[COORDINATOR], int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
        jax.distributed.initialize(*words, heartbeat_timeout_seconds=_patience(config))
    elif config.backend == "jax" and int(os.environ.get(SRUN_COUNT, "1")) > 1:
        import jax

        devices = list(range(config.devices))
        jax.distributed.initialize(local_device_ids=devices, heartbeat_timeout_seconds=_patience(config))


def _patience(config: RunConfig) -> int:
    """Seconds after which JAX ends what no longer answers, without a name: later than ``training.hang_timeout``."""
    limit = config.training.hang_timeout
    return FOR_EVER if limit is None else LEAST_PATIENCE + 2 * math.ceil(limit)


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
