"""The lock on a run: held against real processes, and gone with the last of them."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from forgefield.errors import UserError
from forgefield.prepare import lock, only_one

HOLD = """
import subprocess, sys
from pathlib import Path
from forgefield.prepare import only_one

with only_one(Path(sys.argv[1])) as lock:
    child = subprocess.Popen(["sleep", "60"], pass_fds=[lock], stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    sys.stdin.read()
    child.kill()
    child.wait()
"""


@pytest.fixture
def held(tmp_path):
    """A run, the process that has its lock, and the process ID of a child of that, which has it too."""
    words = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield tmp_path / "run", process, int(process.stdout.readline())
        process.kill()


def test_a_second_command_is_refused_and_told_of_the_first(held, monkeypatch):
    run, process, child = held
    monkeypatch.setattr(lock, "PATIENCE", 0.5)
    with pytest.raises(UserError, match=rf"another command \(process {process.pid} on \S+\) is working on this run"):
        only_one(run).__enter__()
    os.kill(child, signal.SIGKILL)


def test_a_second_command_that_waits_follows_the_first(held, capfd):
    run, process, _ = held
    threading.Timer(1.0, process.stdin.close).start()
    with only_one(run, wait=True):
        assert lock.holder(run) == f"process {os.getpid()} on {os.uname().nodename}"
    assert lock.holder(run) is None
    assert f"{run}: waiting for process {process.pid} on" in capfd.readouterr().err


def test_what_a_killed_process_has_started_keeps_others_off_until_it_has_ended(held):
    run, process, child = held
    process.kill()
    process.wait()
    assert lock.holder(run)
    threading.Timer(1.0, os.kill, (child, signal.SIGKILL)).start()
    with only_one(run):
        pass
