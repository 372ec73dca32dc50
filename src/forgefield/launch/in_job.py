"""Starts this program again in as many processes as a run needs on the nodes of a Slurm job."""

import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from forgefield.config import RunConfig
from forgefield.doctor.processes import find_program
from forgefield.errors import MachineError, UserError
from forgefield.files import make_directory
from forgefield.launch.children import Child, wait
from forgefield.launch.failures import raise_failure
from forgefield.launch.processes import COORDINATOR, FAILURE, RANK_LOGS, STARTED, environment, process_count
from forgefield.launch.rank_logs import Followed, first_failed, last_lines, log_of
from forgefield.launch.slurm import Job, address_of, free_port
from forgefield.trainers.stopping import Stop

# Open MPI refuses root unless told otherwise; other MPIs ignore these. Slurm's PMIx offers a kind of security that the
# MPI of PyPI does not have, and that MPI says so at length.
FOR_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PMIX_MCA_psec": "native"}

PATIENCE = 1.0


def start_in_job(config: RunConfig, job: Job, output: Path, stop: Stop, keep: Sequence[int]) -> None:
    """Start the processes on the nodes of a job, and wait for all of them; what each writes is in ``output/ranks``.

    The descriptors in ``keep`` stay open in what starts them.

    Raises:
        UserError, MachineError: what the first process that failed said.
    """
    logs = output / "ranks"
    make_directory(logs, "output_path")
    with _empty_directory(logs / ".start") as folder:
        failure, messages = folder / "failure.json", folder / "messages"
        said, log = Followed(messages, sys.stderr), Followed(log_of(logs, 0), sys.stdout)

        def follow() -> None:
            if failure.exists():  # the launcher may have to say that another process was lost before
                time.sleep(PATIENCE)
            said.copy()
            log.copy()

        own = {FAILURE: str(failure.resolve()), RANK_LOGS: str(logs.resolve()), STARTED: str(stop.started)}
        given = _environment(config, job) | own
        with open(messages, "w") as file:
            # both end all processes at SIGTERM
            command = [*_launcher(config, job), sys.executable, *sys.argv]
            launcher = Child(command, given, signal.SIGTERM, keep, file, file)
        code = wait([launcher], failure, stop, follow).code
        # what the launcher says of those that it then had to end is of no interest
        before = said.text()
        log.copy()
        if stop.reason is None:
            _report_lost(before, failure, logs, stop.started)
        raise_failure(code, failure, stop)


@contextmanager
def _empty_directory(path: Path) -> Iterator[Path]:
    """A directory for as long as the processes run, which all nodes see, unlike /tmp."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _report_lost(messages: str, failure: Path, logs: Path, begun: float) -> None:
    """Report a process that was killed, or failed without a word; others that miss it may have left a failure, too."""
    if (lost := first_failed(messages)) is None:
        return
    if lost.is_killed or not failure.exists():
        print(last_lines(logs, lost.rank, begun), file=sys.stderr, flush=True)
    if lost.is_killed:
        raise MachineError(f"{lost}; the same command continues it")


def _launcher(config: RunConfig, job: Job) -> list[str]:
    count = process_count(config)
    each = count // config.n_nodes
    if config.slurm.launcher == "mpirun":
        return [_found("mpirun"), "-n", str(count), "--map-by", f"ppr:{each}:node", "--bind-to", "none"]
    mpi = "pmix" if config.parallelism == "mpi" else "none"
    size = [f"--nodes={config.n_nodes}", f"--ntasks={count}", f"--ntasks-per-node={each}"]
    return [_found("srun"), *size, f"--cpus-per-task={job.cpus_per_task}", f"--mpi={mpi}", "--kill-on-bad-exit=1"]


def _found(program: str) -> str:
    path = find_program(program)
    if path is None:
        raise UserError(f"slurm.launcher: {program} is not on the PATH of this job; choose the other one")
    return path


def _environment(config: RunConfig, job: Job) -> dict[str, str]:
    """What tells the processes how many they are and where they meet; Slurm tells each which one it is."""
    count = process_count(config)
    each = count // config.n_nodes
    address, port = address_of(job.nodes[0]), free_port(job.number)
    names = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(each), "MASTER_ADDR": address, "MASTER_PORT": str(port)}
    if config.backend == "jax" and config.parallelism != "mpi":
        names[COORDINATOR] = f"{address}:{port}"
    if config.slurm.launcher == "mpirun":
        # Snakemake has taken them away, and mpirun finds the nodes by them
        nodes = ",".join(job.nodes)
        names |= {"SLURM_NODELIST": nodes, "SLURM_TASKS_PER_NODE": f"{each}(x{config.n_nodes})"}
    return environment() | FOR_MPI | names
