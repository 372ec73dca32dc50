"""Whether srun starts MPI ranks. It is tried: that srun lists a kind of MPI does not mean that it can load it."""

import re
import sys
from collections.abc import Mapping

from forgefield.doctor.findings import Finding, Status
from forgefield.doctor.processes import NO_ANSWER, find_program, run

RANKS = 2
HELLO = "from mpi4py import MPI; print('ranks', MPI.COMM_WORLD.size)"
# seconds in which the cores must come free, and in which the ranks must have answered
WAIT, LIMIT = 20, 60.0
REMEDY = "for runs with parallelism: mpi, write launcher: mpirun in the section slurm"


def try_mpi(chosen: Mapping[str, object]) -> Finding:
    """Start two ranks of MPI by srun, as a run with ``parallelism: mpi`` does, in a job of its own.

    Args:
        chosen: the section of the configuration, of which the account and the partition are used.
    """
    # older ones write the list to stderr
    listed = run(["/bin/sh", "-c", f"{find_program('srun')} --mpi=list 2>&1"], limit=LIMIT)
    if "pmix" not in listed.stdout:
        return _finding("missing", "srun does not know pmix, which Open MPI needs", REMEDY)
    words = ["srun", "--mpi=pmix", f"--ntasks={RANKS}", "--cpus-per-task=1", "--mem-per-cpu=500", "--time=2"]
    words += [f"--immediate={WAIT}", "--kill-on-bad-exit=1"]
    place = {"account": chosen.get("account"), "partition": chosen.get("cpu_partition") or chosen.get("partition")}
    words += [f"--{key}={value}" for key, value in place.items() if value]
    answer = run([*words, sys.executable, "-c", HELLO], limit=LIMIT)
    sizes = [int(size) for size in re.findall(r"ranks (\d+)", answer.stdout)]
    if sizes == [RANKS] * RANKS:
        return _finding("ok", f"srun --mpi=pmix starts ranks; {RANKS} were tried")
    if sizes:
        return _finding("broken", "srun --mpi=pmix starts single processes, which do not know this MPI's PMIx", REMEDY)
    error = answer.error or "no word from the ranks"
    if NO_ANSWER in error or "allocat" in error or "mpi4py" in error:
        return _finding("note", f"srun lists pmix, but that it works is untested: {error}")
    return _finding("broken", f"srun --mpi=pmix: {error}", REMEDY)


def _finding(status: Status, detail: str, remedy: str = "") -> Finding:
    return Finding("slurm", "MPI by srun", status, detail, remedy)
