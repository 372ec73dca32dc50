"""Starts the processes that train one model together, and ends all of them when one fails.

A training of several processes on one machine begins as one, which starts itself several times and waits: by ``mpirun``
for ``parallelism: mpi``, directly for JAX's and PyTorch's processes. In a Slurm job that is large enough for them, it
starts them on the job's nodes by ``srun`` or ``mpirun``; the user's own ``srun``, ``mpirun`` or ``torchrun`` will do,
too. Whichever of them fails first leaves its message in a file; the waiting process then ends them all and reports it
as if it had failed itself.
"""

from forgefield.launch.failures import end_all, ended_together
from forgefield.launch.here import require_here
from forgefield.launch.processes import is_child, is_first, is_started, join, process_count, started
from forgefield.launch.resources import RUN, SMALL, require_resources, run_resources, small_resources
from forgefield.launch.starting import start

__all__ = [
    "RUN",
    "SMALL",
    "end_all",
    "ended_together",
    "is_child",
    "is_first",
    "is_started",
    "join",
    "process_count",
    "require_here",
    "require_resources",
    "run_resources",
    "small_resources",
    "start",
    "started",
]
