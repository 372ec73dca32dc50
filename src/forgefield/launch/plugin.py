"""What Snakemake's plugin for Slurm is to do otherwise here."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from forgefield.errors import UserError
from forgefield.launch.watch import with_watch

# A shell then waits for its command at Slurm's SIGTERM, at which trainings save. Slurm kills what outlives the shell.
OUTLIVE = "trap : TERM"
# those of a process that failed, and more
LINES = 20
# what Snakemake writes into the log of a job that found a mistake of the user's
MISTAKE = f"returned non-zero exit status {UserError.exit_code}."


def adapt_plugin() -> None:
    """Let the plugin, where it is installed, report jobs that will not go on, and give others time to save.

    What it does with a job that failed changes, too: its last lines are shown, and a user's mistake is not tried again.
    """
    try:
        from snakemake_executor_plugin_slurm import Executor
        from snakemake_executor_plugin_slurm_jobstep import Executor as Jobstep
    except ModuleNotFoundError:
        return
    Executor.check_active_jobs = with_watch(Executor.check_active_jobs)
    Executor.print_job_error = with_account(Executor.print_job_error)
    Executor.get_job_exec_prefix = lambda self, job: OUTLIVE
    Jobstep.get_job_exec_prefix = _in_job


def with_account(report: Callable[..., None]) -> Callable[..., None]:
    """The plugin's method, which also shows how the logs of a failed job end, and lets no mistake be repeated."""

    @wraps(report)
    def reported(executor: Any, job_info: Any, msg: str | None = None, **others: Any) -> None:
        logs = [Path(log) for log in job_info.job.log if Path(log).exists()]
        ends = [f"{log} ends with:\n{_end(log)}" for log in logs]
        mistake = _is_mistake(job_info)
        ends += ["This is not submitted again, for another attempt would find the same mistake."] if mistake else []
        report(executor, job_info, "\n".join([msg or "", *ends, ""]), **others)
        if mistake:  # as if this was the last attempt
            job_info.job.attempt = job_info.job.restart_times + 1

    return reported


def _is_mistake(job_info: Any) -> bool:
    log = (job_info.aux or {}).get("slurm_logfile")
    return log is not None and log.exists() and MISTAKE in log.read_text(errors="replace")


def _end(log: Path) -> str:
    return "\n".join(f"    {line}" for line in log.read_text(errors="replace").splitlines()[-LINES:])


def _in_job(self: Any, job: Any) -> str:
    # without `mpi`, the plugin puts a srun before it, which is no shell
    return OUTLIVE if job.resources.get("mpi") else ""
