"""What the jobs of the workflow ask Slurm for, in the words of snakemake-executor-plugin-slurm."""

from collections.abc import Mapping
from math import ceil
from typing import Any

from forgefield.config import RunConfig
from forgefield.config.slurm import SlurmConfig
from forgefield.errors import UserError
from forgefield.launch.processes import process_count

SMALL = ("slurm_account", "slurm_partition", "qos", "constraint", "cpus_per_task", "nodes")
RUN = (*SMALL, "mem_mb", "runtime", "gres", "tasks_per_gpu", "tasks", "tasks_per_node", "mpi")
"""Names of the resources of the two functions below, each None where there is nothing to ask for."""


def small_resources(slurm: SlurmConfig) -> dict[str, Any]:
    """Of a stage of one process, which needs no GPU."""
    apart = slurm.cpu_partition is not None
    return {
        "slurm_account": slurm.account,
        "slurm_partition": slurm.cpu_partition or slurm.partition,
        "qos": None if apart else slurm.qos,
        "constraint": None if apart else slurm.constraint,
        "cpus_per_task": slurm.cpus_per_device,
        "nodes": 1,
    }


def run_resources(run: RunConfig) -> dict[str, Any]:
    """Of training and evaluation: a task for each process, and the devices of each node."""
    slurm, count = run.slurm, process_count(run)
    gpu = f"gpu:{slurm.gpus}" if isinstance(slurm.gpus, str) else "gpu"
    wanted = {
        "slurm_account": slurm.account,
        "slurm_partition": slurm.partition,
        "qos": slurm.qos,
        "constraint": slurm.constraint,
        "cpus_per_task": slurm.cpus_per_device * (run.n_devices // count),
        "nodes": run.n_nodes,
        "mem_mb": slurm.mem_mb,
        "runtime": ceil(slurm.hours * 60),
        # of each node; with GPUs the plugin would take `tasks` for tasks of each
        "gres": f"{gpu}:{run.devices}" if slurm.gpus else None,
        "tasks_per_gpu": 0 if slurm.gpus else None,
    }
    if count > 1:
        # with `mpi` the job's script runs on the first node, outside of any step, where srun can start the others
        wanted["mpi"] = slurm.launcher
        # the plugin refuses `tasks_per_node: 1`; as many tasks as nodes are one on each
        wanted |= {"tasks": count} if count == run.n_nodes else {"tasks_per_node": count // run.n_nodes}
    return wanted


def require_resources(run: RunConfig, found: Mapping[str, Any]) -> int:
    """Refuse a job that cannot hold a run's processes and devices; how many processes it has.

    Args:
        run: the run.
        found: a job's resources, after what a profile and the command line make of them.

    Raises:
        UserError: in one line, the resource and what to change.
    """
    wanted = run_resources(run)
    for key in ("nodes", "tasks", "tasks_per_node", "mpi", "gres", "tasks_per_gpu"):
        value = found.get(key)
        if value != wanted.get(key):
            needs = "none" if wanted.get(key) is None else wanted[key]
            raise UserError(
                f"resources: {key} is {value}, but run {run.name} with devices: {run.devices} and n_nodes: "
                f"{run.n_nodes} needs {needs}; leave {key} out of set-resources and default-resources, and write "
                f"devices, n_nodes, slurm.gpus or slurm.launcher instead"
            )
    for key in ("gpu", "gpus", "nvidia_gpu", "gpu_model"):
        if found.get(key):
            raise UserError(
                f"resources: {key} is {found[key]}, but forgefield asks for tasks and GPUs itself; leave {key} out of "
                "set-resources and default-resources, and write devices, n_nodes and slurm.gpus instead"
            )
    if "--ntasks-per-" in (extra := str(found.get("slurm_extra") or "")):
        raise UserError(
            f"resources: slurm_extra is {extra}, but forgefield asks for tasks itself; leave --ntasks-per-... out, and "
            "write devices and n_nodes instead"
        )
    return process_count(run)
