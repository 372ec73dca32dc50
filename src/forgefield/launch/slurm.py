"""The Slurm job that this process is in, as Slurm describes it.

Snakemake takes nearly all of Slurm's variables out of a job's environment, but not the job's number.
"""

import os
import socket
from typing import NamedTuple

from forgefield.config import RunConfig
from forgefield.doctor.processes import find_program, run
from forgefield.errors import MachineError, UserError
from forgefield.launch.processes import process_count

JOB, STEP = "SLURM_JOB_ID", "SLURM_STEP_ID"
# from here on: batch scripts, interactive shells and the like, in which srun starts steps
FIRST_SPECIAL_STEP = 2**32 - 16
# below the ports that systems give away themselves
FIRST_PORT, PORTS = 20000, 10000


class Job(NamedTuple):
    """A job: its number, the names of its nodes, how many tasks it was made for, and the cores of each."""

    number: int
    nodes: tuple[str, ...]
    tasks: int
    cpus_per_task: int


def allocation(config: RunConfig) -> Job | None:
    """The job in which a run's processes can be started; None where that is done on this machine alone.

    Raises:
        UserError: the job is too small.
    """
    count = process_count(config)
    if count == 1 or in_step() or JOB not in os.environ or find_program("scontrol") is None:
        return None
    job = _job(os.environ[JOB])
    if job.tasks >= count and len(job.nodes) >= config.n_nodes:
        return job
    if config.n_nodes == 1:
        return None
    raise UserError(
        f"n_nodes: devices: {config.devices} on n_nodes: {config.n_nodes} need {count} tasks, but job {job.number} has "
        f"{job.tasks} on {len(job.nodes)} nodes; submit it with --nodes {config.n_nodes} --ntasks-per-node "
        f"{count // config.n_nodes}, or write n_nodes=1"
    )


def in_step() -> bool:
    """Whether srun has started this process, which then cannot start others on other nodes."""
    return int(os.environ.get(STEP, FIRST_SPECIAL_STEP)) < FIRST_SPECIAL_STEP


def address_of(node: str) -> str:
    """Where a node is reached."""
    return _field("node", node, _fields("node", node), "NodeAddr")


def free_port(number: int) -> int:
    """A port that belongs to a job, or the next one that is free on this node."""
    for i in range(PORTS):
        port = FIRST_PORT + (number + i) % PORTS
        with socket.socket() as s:
            try:
                s.bind(("", port))
            except OSError:
                continue
            return port
    raise MachineError(f"no port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} is free on this node")


def _job(number: str) -> Job:
    found = _fields("job", number)
    nodes = tuple(_ask("scontrol", "show", "hostnames", _field("job", number, found, "NodeList")).split())
    tasks, cores = _field("job", number, found, "NumTasks"), found.get("CPUs/Task", "")
    # Slurm may write N/A
    return Job(int(number), nodes, int(tasks) if tasks.isdigit() else 1, int(cores) if cores.isdigit() else 1)


def _fields(kind: str, name: str) -> dict[str, str]:
    words = _ask("scontrol", "--oneliner", "show", kind, name).split()
    return {key: value for key, equals, value in (word.partition("=") for word in words) if equals}


def _field(kind: str, name: str, found: dict[str, str], key: str) -> str:
    if key not in found:
        raise MachineError(f"Slurm does not tell about this job: scontrol show {kind} {name} has no {key}")
    return found[key]


def _ask(*command: str) -> str:
    answer = run(command, limit=60)
    if answer.error:
        raise MachineError(f"Slurm does not tell about this job: {' '.join(command)}: {answer.error}")
    return answer.stdout
