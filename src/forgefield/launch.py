"""Starts the processes that train one model together, and ends all of them when one fails.

A training of several processes on one machine begins as one, which starts itself several times and waits: by ``mpirun``
for ``parallelism: mpi``, directly for JAX's and PyTorch's processes. Those of several nodes are started by ``srun``,
``torchrun`` or the user's own ``mpirun``. Whichever of them fails first leaves its message in a file; the waiting
process then ends them all and reports it as if it had failed itself.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from forgefield.config import RunConfig
from forgefield.doctor.processes import find_program
from forgefield.errors import MachineError, UserError

# environment of the started processes
FAILURE, COORDINATOR = "FORGEFIELD_FAILURE_FILE", "FORGEFIELD_COORDINATOR"
# by which launchers say how many processes they have started, which of all this one is, and which of those on its node
SRUN_COUNT = "SLURM_STEP_NUM_TASKS"
# how many nodes a Slurm job has, in which srun starts processes
JOB_NODES = "SLURM_JOB_NUM_NODES"
COUNTS = {"jax": ("OMPI_COMM_WORLD_SIZE", SRUN_COUNT), "fabric": ("WORLD_SIZE", SRUN_COUNT)}
RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK", "SLURM_PROCID")
LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK", "SLURM_LOCALID")
# Open MPI refuses root unless told otherwise; other MPIs ignore these
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PR_SET_PDEATHSIG = 1
# more would spend their time waiting for each other
MOST_PER_CORE = 4
POLL_SECONDS, GRACE_SECONDS = 0.1, 5.0


def process_count(config: RunConfig) -> int:
    """How many processes a run needs: one per device with ``mpi`` and PyTorch, one per node with JAX."""
    by_device = config.backend == "fabric" or config.parallelism == "mpi"
    return config.n_devices if by_device else config.n_nodes


def is_started(config: RunConfig) -> bool:
    """Whether this process is one of several that were started together, here or by the user's own launcher."""
    return FAILURE in os.environ or any(int(os.environ.get(name, "1")) > 1 for name in COUNTS[config.backend])


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


def start(config: RunConfig) -> None:
    """Run this program again in as many processes as ``config`` needs, and wait for all of them.

    Raises:
        UserError, MachineError: what the first process that failed said.
    """
    count, command = process_count(config), [sys.executable, *sys.argv]
    with tempfile.TemporaryDirectory() as folder:
        failure = Path(folder) / "failure.json"
        environment = os.environ | {FAILURE: str(failure)}
        if config.parallelism == "mpi":
            # mpirun ends its ranks at SIGTERM
            children = [Child([*_mpirun(count), *command], environment | AS_ROOT, signal.SIGTERM)]
        else:
            port = _free_port()
            own = [_names(config.backend, i, count, port) for i in range(count)]
            children = [Child(command, environment | names, signal.SIGKILL) for names in own]
        code = _wait(children, failure)
        # whoever loses its connection to a process that was killed reports that too
        if failure.exists() and code >= 0:
            _report(failure)
        if code:
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
            raise MachineError(f"a process of the training {how}; run again: it continues from the last checkpoint")


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
    elif config.backend == "fabric":
        # PyTorch's processes see all GPUs, and each takes its own; JAX, which evaluates MACE, would take all
        os.environ["JAX_CUDA_VISIBLE_DEVICES"] = str(rank % len(visible.split(",")) if visible else rank)
    elif COORDINATOR in os.environ:
        import jax

        jax.distributed.initialize(os.environ[COORDINATOR], int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))
    elif int(os.environ.get(SRUN_COUNT, "1")) > 1:
        import jax

        jax.distributed.initialize(local_device_ids=list(range(config.devices)))


def _number(names: Sequence[str]) -> int | None:
    """The first of these that the environment has."""
    return next((int(os.environ[name]) for name in names if name in os.environ), None)


@contextmanager
def ended_together() -> Iterator[None]:
    """Where anything fails, leave the message for the process that waits, and end at once, so that all are ended."""
    try:
        yield
    except (UserError, MachineError) as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGINT)
    except SystemExit as error:  # at a signal
        os._exit(error.code if isinstance(error.code, int) else 1)
    except BaseException as error:  # whatever it is, the others must not wait for this process
        _fail(f"{type(error).__name__}: {error}", 1, traceback.format_exc())


def _fail(message: str, code: int, trace: str = "") -> NoReturn:
    line, path = " ".join(message.split()), os.environ.get(FAILURE)
    sys.stdout.flush()
    if path is None:
        print(f"{trace}error: {line}", file=sys.stderr, flush=True)
    else:
        own = Path(f"{path}.{os.getpid()}")
        own.write_text(json.dumps({"message": line, "code": code, "trace": trace}))
        # the first one is the cause, others may follow from it
        with suppress(FileExistsError):
            os.link(own, path)
        # mpirun would say at length that a rank has failed, were it not ended first
        time.sleep(GRACE_SECONDS)
    # without the clean-up of MPI and of jax.distributed, which wait for the others
    os._exit(code)


def _report(failure: Path) -> NoReturn:
    found = json.loads(failure.read_text())
    print(found["trace"], end="", file=sys.stderr, flush=True)
    raise (UserError if found["code"] == UserError.exit_code else MachineError)(found["message"])


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


class Child(subprocess.Popen):
    """A process that is ended by a signal of its own, also when its parent is gone, even by SIGKILL (on Linux)."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], end: signal.Signals) -> None:
        self._end = end
        super().__init__(command, env=environment, preexec_fn=self._end_with_parent)

    def terminate(self) -> None:
        self.send_signal(self._end)

    def _end_with_parent(self) -> None:
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, self._end)


def _wait(children: Sequence[Child], failure: Path) -> int:
    """Wait until all have ended or one has failed, which ends the others; returns the first code that is not 0."""
    try:
        while None in (codes := [child.poll() for child in children]) and not any(codes) and not failure.exists():
            time.sleep(POLL_SECONDS)
        return next((code for code in codes if code), 0)
    finally:
        _end(children)


def _end(children: Sequence[Child]) -> None:
    for child in children:
        child.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    for child in children:
        try:
            child.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _take_cores(index: int, count: int) -> None:
    """Stay on this process's share of the cores, if there is one for each."""
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    own = [len(cores) * i // count for i in (index, index + 1)]
    if own[1] > own[0]:
        os.sched_setaffinity(0, cores[own[0] : own[1]])


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]
