"""What Snakemake's plugin for Slurm is to do otherwise here."""

from typing import Any

from forgefield.launch.watch import with_watch

# A shell then waits for its command at Slurm's SIGTERM, at which trainings save. Slurm kills what outlives the shell.
OUTLIVE = "trap : TERM"


def adapt_plugin() -> None:
    """Let the plugin, where it is installed, report jobs that will not go on, and give others time to save."""
    try:
        from snakemake_executor_plugin_slurm import Executor
        from snakemake_executor_plugin_slurm_jobstep import Executor as Jobstep
    except ModuleNotFoundError:
        return
    Executor.check_active_jobs = with_watch(Executor.check_active_jobs)
    Executor.get_job_exec_prefix = lambda self, job: OUTLIVE
    Jobstep.get_job_exec_prefix = _in_job


def _in_job(self: Any, job: Any) -> str:
    # without `mpi`, the plugin puts a srun before it, which is no shell
    return OUTLIVE if job.resources.get("mpi") else ""
