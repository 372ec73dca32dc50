"""Starts this program again in as many processes as a run needs on this machine."""

import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from forgefield.config import RunConfig
from forgefield.doctor.processes import find_program
from forgefield.errors import MachineError, StoppedError, UserError
from forgefield.launch.children import Child, wait
from forgefield.launch.failures import raise_failure
from forgefield.launch.in_job import start_in_job
from forgefield.launch.processes import COORDINATOR, FAILURE, STARTED, environment, process_count
from forgefield.launch.rank_logs import Followed, first_failed
from forgefield.launch.slurm import allocation
from forgefield.trainers.stopping import Stop

# Open MPI refuses root unless told otherwise; other MPIs ignore these
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def start(config: RunConfig, output: Path, stop: Stop, keep: Sequence[int] = ()) -> None:
    """Run this program again in as many processes as ``config`` needs, and wait for all of them.

    Args:
        config: of the run.
        output: the run's directory, in which each process of a Slurm job has a log.
        stop: whether this process is asked to end, which it then asks of the others.
        keep: descriptors that stay open in these processes, such as that of a lock, which then holds until all have
            ended.

    Raises:
        UserError, MachineError, StoppedError: what the first process that ended early said.
    """
    if job := allocation(config):
        start_in_job(config, job, output, stop, keep)
    else:
        _start_here(config, stop, keep)


def _start_here(config: RunConfig, stop: Stop, keep: Sequence[int]) -> None:
    count, command = process_count(config), [sys.executable, *sys.argv]
    with tempfile.TemporaryDirectory() as folder:
        failure = Path(folder) / "failure.json"
        given = environment() | {FAILURE: str(failure), STARTED: str(stop.started)}
        if config.parallelism == "mpi":
            _start_by_mpirun([*_mpirun(count), *command], given | AS_ROOT, failure, stop, keep)
            return
        port = _free_port()
        own = [_names(config.backend, i, count, port) for i in range(count)]
        children = [Child(command, given | names, signal.SIGKILL, keep) for names in own]
        rank, code = wait(children, failure, stop)
        raise_failure(code, failure, stop, f"rank {rank}")


def _start_by_mpirun(
    command: Sequence[str], given: dict[str, str], failure: Path, stop: Stop, keep: Sequence[int]
) -> None:
    messages = failure.with_name("messages")
    said = Followed(messages, sys.stderr)
    with open(messages, "w") as file:
        # mpirun ends its ranks at SIGTERM
        child = Child(command, given, signal.SIGTERM, keep, errors=file)
    code = wait([child], failure, stop, said.copy).code
    before = said.text()  # mpirun had to end the others
    said.copy()
    if code == 1 and stop.reason is not None and not failure.exists():
        raise StoppedError(
            f"stopped {stop.reason}, which mpirun got, too, and ended its processes, maybe before they were saved; "
            "the same command continues from the last checkpoint"
        )
    if stop.reason is None and (lost := first_failed(before)) and (lost.is_killed or not failure.exists()):
        raise MachineError(f"{lost}; run again: it continues from the last checkpoint")
    raise_failure(code, failure, stop)


def _mpirun(count: int) -> list[str]:
    mpirun = find_program("mpirun")
    if mpirun is None:
        raise UserError("parallelism: mpi needs mpirun, which is not on the PATH; pip install 'forgefield[mpi]'")
    # cores are shared out by the ranks themselves, in the same way as JAX's processes do
    return [mpirun, "-n", str(count), "--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]


def _names(backend: str, index: int, count: int, port: int) -> dict[str, str]:
    """What tells a process which of all it is, and where they meet; what torchrun would say, and more for JAX."""
    ranks, counts = {"RANK": index, "LOCAL_RANK": index}, {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    numbers = ranks | counts | {"MASTER_PORT": port}
    meeting = {"MASTER_ADDR": "localhost"} | ({COORDINATOR: f"localhost:{port}"} if backend == "jax" else {})
    return meeting | {name: str(number) for name, number in numbers.items()}


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]
