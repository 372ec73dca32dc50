"""What Snakemake's plugin for Slurm is to do otherwise here."""

from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

from forgefield.launch.attempts import Progress, is_mistake, text_of, was_cut_off
from forgefield.launch.watch import with_watch

# A shell then waits for its command at Slurm's SIGTERM, at which trainings save. Slurm kills what outlives the shell.
OUTLIVE = "trap : TERM"
# those of a process that failed, and more
LINES = 20
NO_MORE = "This is not submitted again, for another attempt would find the same mistake."
GOES_ON = (
    "This is no failure: what was trained is saved, and the next job goes on from there. It uses none of `retries`."
)


def adapt_plugin() -> None:
    """Let the plugin, where it is installed, report jobs that will not go on, and give others time to save.

    What it does with a job that failed changes, too: its last lines are shown, a user's mistake is not tried again, and
    a training that was cut off and has got further is, without using up one of the `retries`.
    """
    try:
        from snakemake_executor_plugin_slurm import Executor
        from snakemake_executor_plugin_slurm_jobstep import Executor as Jobstep
    except ModuleNotFoundError:
        return
    Executor.check_active_jobs = with_watch(Executor.check_active_jobs)
    progress = Progress()
    Executor.run_job = with_progress(Executor.run_job, progress)
    Executor.print_job_error = with_account(Executor.print_job_error, progress)
    Executor.get_account_arg = with_given(Executor.get_account_arg)
    Executor.get_job_exec_prefix = lambda self, job: OUTLIVE
    Jobstep.get_job_exec_prefix = _in_job


def with_account(report: Callable[..., None], progress: Progress) -> Callable[..., None]:
    """The plugin's method, which also shows how the logs of a failed job end, and decides what becomes of the job."""

    @wraps(report)
    def reported(executor: Any, job_info: Any, msg: str | None = None, **others: Any) -> None:
        job, message = job_info.job, msg or ""
        ends = [f"{log} ends with:\n{end}" for log in job.log if (end := _end(Path(log)))]
        mistake = is_mistake(job_info, message)
        # what fails by itself may do so again and again
        further = not mistake and job.restart_times > 0 and was_cut_off(job_info, message) and progress.made(job)
        ends += [NO_MORE] if mistake else []
        ends += [GOES_ON] if further else []
        report(executor, job_info, "\n".join([message, *ends, ""]), **others)
        if mistake:  # as if this was the last attempt
            job.attempt = job.restart_times + 1
        elif further:  # to which Snakemake adds one
            job.attempt -= 1

    return reported


def with_given(account: Callable[..., Iterator[str]]) -> Callable[..., Iterator[str]]:
    """The plugin's method, which names no account where the user has not, instead of that of the user's last job."""

    @wraps(account)
    def given(executor: Any, job: Any) -> Iterator[str]:
        return account(executor, job) if job.resources.get("slurm_account") else iter([""])

    return given


def with_progress(submit: Callable[..., None], progress: Progress) -> Callable[..., None]:
    """The plugin's method, which also notes what is there before a job."""

    @wraps(submit)
    def submitted(executor: Any, job: Any) -> None:
        progress.begin(job)
        submit(executor, job)

    return submitted


def _end(log: Path) -> str:
    return "\n".join(f"    {line}" for line in text_of(log).splitlines()[-LINES:])


def _in_job(self: Any, job: Any) -> str:
    # without `mpi`, the plugin puts a srun before it, which is no shell
    return OUTLIVE if job.resources.get("mpi") else ""
