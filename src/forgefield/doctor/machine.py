"""The programs outside Python: compiler, MPI and Slurm."""

import sysconfig
from pathlib import Path

from forgefield.doctor.findings import Finding
from forgefield.doctor.processes import find_program, run

BUILD_REMEDY = "apt-get install g++ python3-dev, then make venv"


def check_programs() -> list[Finding]:
    """Return a finding each for the C++ compiler, Python's headers, mpicc, mpirun and Slurm."""
    mpi_remedy = "make venv, or pip install -e '.[mpi]'"
    return [
        check_program("C++ compiler", ("c++", "g++", "clang++"), BUILD_REMEDY),
        check_headers(),
        check_program("mpicc", ("mpicc",), mpi_remedy),
        check_program("mpirun", ("mpirun",), mpi_remedy),
        check_slurm(),
    ]


def check_program(name: str, candidates: tuple[str, ...], remedy: str) -> Finding:
    """Find the first of some programs and ask for its version."""
    path = next((path for path in map(find_program, candidates) if path), None)
    if path is None:
        return Finding("programs", name, "missing", f"no {' or '.join(candidates)} on the PATH", remedy)
    answer = run([path, "--version"], limit=10)
    if answer.error:
        return Finding("programs", name, "broken", f"{path} --version: {answer.error}", remedy)
    return Finding("programs", name, "ok", f"{first_line(answer.stdout)} ({path})")


def check_headers() -> Finding:
    """Look for Python.h, which compiling mpi4jax needs."""
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if header.is_file():
        return Finding("programs", "Python headers", "ok", str(header))
    return Finding("programs", "Python headers", "missing", f"no {header}", BUILD_REMEDY)


def check_slurm() -> Finding:
    """Look for Slurm's commands and ask the controller for its partitions."""
    commands = ("sbatch", "sinfo", "squeue")
    missing = [command for command in commands if find_program(command) is None]
    if missing:
        detail = f"no {', '.join(missing)}; only snakemake --profile slurm needs Slurm"
        return Finding("programs", "Slurm", "note" if len(missing) == len(commands) else "broken", detail)
    answer = run([str(find_program("sinfo")), "--noheader", "--format=%P %a %D"], limit=10)
    if answer.error:
        return Finding("programs", "Slurm", "broken", f"sinfo: {answer.error}", "ask the cluster's administrators")
    return Finding("programs", "Slurm", "ok", f"partitions: {', '.join(answer.stdout.splitlines()) or 'none'}")


def first_line(text: str) -> str:
    """Return the first line of a text, or a placeholder."""
    return next(iter(text.strip().splitlines()), "no version given")
