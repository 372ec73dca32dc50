"""Run a program within a time limit, and the doctor's probes in processes of their own."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from forgefield.doctor.probe import MARK

# [s]. Importing PyTorch on a busy machine takes a minute; the usual probe takes under ten seconds.
TIME_LIMIT = 120.0
NO_ANSWER = "no answer within"

ENVIRONMENTS = {
    # Two devices on a CPU; the memory of a GPU is not claimed, as the probes run side by side.
    "jax": {
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    },
    # Open MPI refuses root, and more ranks than cores, unless told otherwise; other MPIs ignore these.
    "mpi": {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    },
    # e3nn, which mace-torch needs, reads its constants with torch.load.
    "fabric": {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"},
}


@dataclass(frozen=True)
class Answer:
    """What a program printed, or why it gave no answer."""

    stdout: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Probe:
    """What a probe reported.

    Attributes:
        imports: Distribution -> what went wrong on import, or None; a package that killed the probe is absent.
        trial: The trial's results; None if there was none or it failed.
        error: Why the trial failed or the probe ended early; None otherwise.
    """

    imports: Mapping[str, str | None] = field(default_factory=dict)
    trial: Mapping | None = None
    error: str | None = None


def find_program(name: str) -> str | None:
    """Return a program's path: beside the running Python first, so that an inactive environment works, then on PATH."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, limit: float = TIME_LIMIT) -> Answer:
    """Run a command with extra environment variables; kill it and its children at the time limit [s]. Never raises."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    except OSError as error:
        return Answer(error=f"{Path(command[0]).name} does not start: {error.strerror}")
    try:
        stdout, stderr = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Answer(error=f"{NO_ANSWER} {limit:.0f} s")
    if process.returncode == 0:
        return Answer(stdout)
    reason = next((line.strip() for line in reversed(stderr.splitlines()) if line.strip(" -*")), "no message")
    return Answer(stdout, f"{_ending(process.returncode)}: {reason}")


def _ending(code: int) -> str:
    return f"ended with code {code}" if code > 0 else f"killed by {signal.Signals(-code).name}"


def run_probe(group: str) -> Probe:
    """Import and try one group of packages in a new process; with MPI, in two."""
    command = [sys.executable, "-m", "forgefield.doctor.probe", group]
    environment = ENVIRONMENTS.get(group)
    if group == "mpi" and (mpirun := find_program("mpirun")):
        together = read_probe(run([mpirun, "-n", "2", *command], environment))
        # Where mpirun itself fails, the packages may still be well.
        return together if together.imports else replace(read_probe(run(command)), trial=None, error=together.error)
    return read_probe(run(command, environment))


def read_probe(answer: Answer) -> Probe:
    """Collect what a probe had printed when it ended."""
    results: dict = {}
    for line in answer.stdout.splitlines():
        if line.startswith(MARK):
            with contextlib.suppress(json.JSONDecodeError):
                results.update(json.loads(line.removeprefix(MARK)))
    return Probe(results.get("imports", {}), results.get("trial"), results.get("error", answer.error))
