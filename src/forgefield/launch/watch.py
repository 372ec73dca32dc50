"""Ends the wait of Snakemake for jobs that will not go on.

The plugin for Slurm asks again and again for a job that was preempted without being queued again, for one of which
``sacct`` says who cancelled it, for one that Slurm has forgotten, and for one that waits for what no node has.
"""

import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from functools import wraps
from typing import Any

from forgefield.launch.pending import WAITS, way_out

OVER = {
    "BOOT_FAIL",
    "CANCELLED",
    "DEADLINE",
    "EXPIRED",
    "FAILED",
    "LAUNCH_FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "RECONFIG_FAIL",
    "REVOKED",
    # queued again by Slurm after a fault, but held there for an administrator
    "SPECIAL_EXIT",
    "TIMEOUT",
}
# why a job that is queued again stays there, in squeue's words, until an administrator lets it go
HELD = {"launch failed requeued held", "JobHoldMaxRequeue"}
LOST = "unknown to Slurm"
# seconds in which Slurm may still put a job into its queue again
PATIENCE = 60.0

Check = Callable[[Any, list[Any]], AsyncIterator[Any]]


def with_watch(check: Check) -> Check:
    """The plugin's method, of whose jobs those are reported that are over, or lost, for some time."""
    watch = Watch()

    @wraps(check)
    async def checked(executor: Any, active_jobs: list[Any]) -> AsyncIterator[Any]:
        if not active_jobs:  # the first call may come before the plugin has made all that it keeps
            async for job in check(executor, active_jobs):
                yield job
            return
        excluded = set(executor._failed_nodes)
        answers = executor._status_query_calls
        waiting = [job async for job in check(executor, active_jobs)]
        if executor._status_query_calls == answers:  # Slurm did not answer: the plugin would forget them all
            waiting = list(active_jobs)
        # Slurm uses no node that is down. The plugin would use none of a job's nodes again, of which one has failed.
        executor._failed_nodes = excluded
        ended = watch.ended([job.external_jobid for job in waiting], states_of)
        # a job's end is noticed in time, however long it has run
        first = executor.workflow.executor_settings.init_seconds_before_status_checks
        executor.next_seconds_between_status_checks = min(executor.next_seconds_between_status_checks, 3 * first)
        for job in waiting:
            number = job.external_jobid
            if number not in ended:
                yield job
            elif ended[number] == "COMPLETED":
                executor.report_job_success(job)
            elif _cancel(number, ended[number]):
                executor.report_job_error(job, msg=_account(number, ended[number], job.job.name))
            else:
                yield job

    return checked


class Watch:
    """Since when jobs have been over without anybody saying so."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def ended(self, jobs: list[str], ask: Callable[[], dict[str, str] | None]) -> dict[str, str]:
        """The final state of those jobs that have been over, or unknown, for as long as we wait.

        Args:
            jobs: numbers of jobs.
            ask: says in which states the user's jobs are; None where Slurm does not answer.
        """
        states = ask() if jobs else {}
        if states is None:
            return {}
        now, over = self._clock(), {job: states.get(job, LOST) for job in jobs}
        over = {job: state for job, state in over.items() if state in OVER or state == LOST or state.startswith(WAITS)}
        self._since = {job: self._since.get(job, now) for job in over}
        late = [job for job in over if now - self._since[job] >= PATIENCE]
        found = {job: recorded_state(job) if over[job] == LOST else over[job] for job in late}
        # and not where only squeue does not know of a job, as of one of another cluster
        known = {*OVER, LOST, "COMPLETED"}
        return {job: state for job, state in found.items() if state in known or state.startswith(WAITS)}


def states_of() -> dict[str, str] | None:
    """The states of the user's jobs that Slurm knows, or None where it does not answer."""
    return _states(["squeue", "--noheader", "--states=all", "--format=%i|%T|%r|%P", f"--user={os.getuid()}"])


def recorded_state(job: str) -> str:
    """What became of a job that Slurm knows no more, by its accounts if there are any."""
    words = ["sacct", "--allocations", "--noheader", "--parsable2", "--format=JobIDRaw,State", f"--jobs={job}"]
    return (_states(words) or {}).get(job, LOST)


def _states(command: list[str]) -> dict[str, str] | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    rows = [line.strip().split("|") for line in done.stdout.splitlines() if "|" in line]
    return {number: _state(state, *why) for number, state, *why in rows}


def _state(state: str, reason: str = "", partitions: str = "") -> str:
    if reason.replace("_", " ") in HELD:
        return "SPECIAL_EXIT"
    if state == "PENDING" and way_out(reason, partitions):
        return f"{WAITS}{reason}"
    # "CANCELLED by 1000"
    return state.split()[0]


def _cancel(number: str, state: str) -> bool:
    """Cancel a job in this state, and whether it is over: one that waited may have started just now."""
    waits = state.startswith(WAITS)
    subprocess.run(["scancel", *(["--state=PENDING"] if waits else []), number], check=False, capture_output=True)
    if not waits:
        return True
    states = states_of()
    return states is not None and states.get(number, LOST) in {*OVER, LOST}


def _account(number: str, state: str, rule: str) -> str:
    if not state.startswith(WAITS):
        return f"Slurm's job {number} is over: {state}"
    what = way_out(state.removeprefix(WAITS))
    if rule not in ("train", "evaluate"):  # which alone ask for what these keys say
        what = what.replace("slurm.hours", f"--set-resources {rule}:runtime=MINUTES")
        what = what.replace("slurm.mem_mb", f"--set-resources {rule}:mem_mb=MB")
    return f"error: Slurm's job {number} {state}; change {what}"
