"""Programs that hang, fail or are not there."""

import os
import sys
import time
from pathlib import Path

from forgefield.doctor.processes import find_program, run, run_probe


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_program_over_the_limit_is_killed_with_its_children(tmp_path):
    pid_file = tmp_path / "pid"
    answer = run(["sh", "-c", f"sleep 300 & echo $! > {pid_file}; wait"], limit=1)
    assert answer.error == "no answer within 1 s"
    child = int(pid_file.read_text())
    deadline = time.monotonic() + 10
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)


def test_failing_program_gives_its_last_words():
    answer = run([sys.executable, "-c", "print('half'); raise ValueError('no such device')"])
    assert answer.stdout == "half\n"
    assert answer.error == "ended with code 1: ValueError: no such device"


def test_program_that_is_not_there_is_an_answer():
    assert "does not start" in (run(["/no/such/program"]).error or "")


def test_programs_beside_python_come_before_the_path(tmp_path, add_program, monkeypatch):
    add_program("mpirun", "true")
    monkeypatch.setenv("PATH", os.defpath)
    assert find_program("mpirun") == str(tmp_path / "env" / "bin" / "mpirun")


def test_failing_mpirun_is_told_from_failing_packages(add_program, broken_package):
    broken_package("mpi4py", "import sys; sys.modules['mpi4py.MPI'] = sys")
    broken_package("mpi4jax", "")
    add_program("mpirun", "echo 'not enough slots' >&2; exit 1")
    probe = run_probe("mpi")
    assert probe.imports == {"mpi4py": None, "mpi4jax": None}
    assert probe.trial is None
    assert probe.error == "ended with code 1: not enough slots"
