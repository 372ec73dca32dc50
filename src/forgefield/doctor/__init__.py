"""What this machine can run: versions, devices, MPI, Slurm, and each engine with each parallel method.

Every answer comes from trying the thing in a process of its own, so a broken package cannot break the report.
"""

from concurrent.futures import ThreadPoolExecutor

from forgefield.doctor.findings import Finding
from forgefield.doctor.judge import judge_devices, judge_methods, judge_packages
from forgefield.doctor.machine import check_programs
from forgefield.doctor.packages import GROUPS
from forgefield.doctor.processes import run_probe
from forgefield.doctor.report import report


def diagnose() -> list[Finding]:
    """Check everything, the slow checks side by side.

    Returns:
        One finding per package, device, program and method.
    """
    with ThreadPoolExecutor() as pool:
        futures = {group: pool.submit(run_probe, group) for group in GROUPS}
        programs = check_programs()
        probes = {group: future.result() for group, future in futures.items()}
    found = [*judge_packages(probes), *programs]
    return [*found, *judge_devices(probes, found), *judge_methods(probes, found)]


def run_doctor() -> None:
    """Check this machine and print the report (``forgefield doctor``)."""
    report(diagnose())
