"""What this machine can run: versions, devices, MPI, Slurm, and each engine with each parallel method.

Every answer comes from trying the thing in a process of its own, so a broken package cannot break the report.
"""

from concurrent.futures import ThreadPoolExecutor

from forgefield.doctor.findings import Finding
from forgefield.doctor.judge import judge_devices, judge_methods, judge_packages
from forgefield.doctor.machine import check_programs
from forgefield.doctor.packages import GROUPS
from forgefield.doctor.processes import Probe, run_probe
from forgefield.doctor.progress import RunningChecks
from forgefield.doctor.report import report
from forgefield.doctor.slurm import examine, render

__all__ = ["RunningChecks", "diagnose", "examine", "render", "report"]


def diagnose(checks: RunningChecks) -> list[Finding]:
    """Check everything, the slow checks side by side.

    Args:
        checks: Shows what is running.

    Returns:
        One finding per package, device, program and method.
    """

    def probe(group: str) -> Probe:
        with checks.running(group):
            return run_probe(group)

    with checks, ThreadPoolExecutor() as pool:
        futures = {group: pool.submit(probe, group) for group in GROUPS}
        with checks.running("programs"):
            programs = check_programs()
        probes = {group: future.result() for group, future in futures.items()}
    found = [*judge_packages(probes), *programs]
    return [*found, *judge_devices(probes, found), *judge_methods(probes, found)]
