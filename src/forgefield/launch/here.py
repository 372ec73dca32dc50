"""What one process, which starts the others on its own machine, refuses to do."""

import os
import sys

from forgefield.config import RunConfig
from forgefield.errors import UserError
from forgefield.launch.slurm import allocation, in_step

# how many nodes a Slurm job has, in which srun starts processes
JOB_NODES = "SLURM_JOB_NUM_NODES"
# more would spend their time waiting for each other
MOST_PER_CORE = 4


def require_here(config: RunConfig) -> None:
    """Refuse the work of several nodes in one process of a job, and far more devices than this machine has CPU cores.

    Not where the processes are started on the nodes of a job.
    """
    if allocation(config):
        return
    if config.n_nodes > 1 and (in_step() or int(os.environ.get(JOB_NODES, "1")) > 1):
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
