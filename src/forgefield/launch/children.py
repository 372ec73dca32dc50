"""Processes that end with the one that has started them, and all together."""

import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from forgefield.trainers.stopping import Stop

PR_SET_PDEATHSIG = 1
POLL_SECONDS, GRACE_SECONDS = 0.1, 5.0


class Ended(NamedTuple):
    """Which of several processes has ended, and its code, which is negative for a signal."""

    index: int
    code: int


class Child(subprocess.Popen):
    """A process that is ended by a signal of its own, also when its parent is gone, even by SIGKILL (on Linux).

    Args:
        command, environment: of the process.
        end: the signal.
        keep: descriptors that stay open in it.
        output, errors: the files that its stdout and stderr go to; None: where its parent's do.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: dict[str, str],
        end: signal.Signals,
        keep: Sequence[int] = (),
        output: TextIO | None = None,
        errors: TextIO | None = None,
    ) -> None:
        self._end = end
        # in a group of its own: what a terminal sends to all of a group reaches only the parent, which passes it on
        apart = {"process_group": 0, "stdin": subprocess.DEVNULL, "pass_fds": keep, "stdout": output, "stderr": errors}
        super().__init__(command, env=environment, preexec_fn=self._end_with_parent, **apart)

    def ask(self) -> None:
        """Ask it to end its training; mpirun and srun pass this signal on to the processes that they have started."""
        self.send_signal(signal.SIGUSR1)

    def terminate(self) -> None:
        self.send_signal(self._end)

    def _end_with_parent(self) -> None:
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, self._end)


def wait(children: Sequence[Child], failure: Path, stop: Stop, meanwhile: Callable[[], object] = lambda: None) -> Ended:
    """Wait until all have ended or one has failed, which ends the others; returns the first that failed.

    Args:
        children: the processes.
        failure: the file that the first one that fails leaves.
        stop: where this process is asked to stop, the children are.
        meanwhile: called again and again, and once before any is ended.
    """
    passed_on = False
    try:
        while None in (codes := [child.poll() for child in children]) and not any(codes) and not failure.exists():
            meanwhile()
            if stop.asked and not passed_on:
                passed_on = True
                for child in children:
                    child.ask()
            time.sleep(POLL_SECONDS)
        meanwhile()
        ended = [Ended(index, code) for index, code in enumerate(codes) if code]
        # others fail or abort because they miss one that was killed
        return min(ended, key=lambda process: (process.code > 0, process.code == -signal.SIGABRT), default=Ended(0, 0))
    finally:
        _end(children)


def _end(children: Sequence[Child]) -> None:
    for child in children:
        child.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    for child in children:
        try:
            child.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
