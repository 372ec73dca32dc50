"""Starts the processes that train one model together, and ends all of them when one fails.

A training of several processes on one machine begins as one, which starts itself several times and waits: by ``mpirun``
for ``parallelism: mpi``, directly for JAX's and PyTorch's processes. Those of several nodes are started by ``srun``,
``torchrun`` or the user's own ``mpirun``. Whichever of them fails first leaves its message in a file; the waiting
process then ends them all and reports it as if it had failed itself.
"""

from forgefield.launch.failures import end_all, ended_together
from forgefield.launch.processes import is_child, is_first, is_started, join, process_count, require_here, started
from forgefield.launch.starting import start

__all__ = [
    "end_all",
    "ended_together",
    "is_child",
    "is_first",
    "is_started",
    "join",
    "process_count",
    "require_here",
    "start",
    "started",
]
