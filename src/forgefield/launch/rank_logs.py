"""What each process of a job writes, in a file of its own."""

import os
import re
import socket
import sys
from pathlib import Path
from typing import NamedTuple, TextIO

LINES = 10


class Followed:
    """A file that grows, of which what is new is copied.

    Args:
        path: the file, which need not be there yet; what it holds now counts as seen.
        to: where to copy it.
    """

    def __init__(self, path: Path, to: TextIO) -> None:
        self._path, self._to = path, to
        self._start = self._seen = path.stat().st_size if path.exists() else 0

    def copy(self) -> None:
        """Copy what came since the last call."""
        if not self._path.exists():
            return
        with open(self._path, "rb") as file:
            file.seek(self._seen)
            new = file.read()
        self._seen += len(new)
        self._to.write(new.decode(errors="replace"))
        self._to.flush()

    def text(self) -> str:
        """What was copied."""
        with open(self._path, "rb") as file:
            file.seek(self._start)
            return file.read(self._seen - self._start).decode(errors="replace")


def log_of(folder: Path, rank: int) -> Path:
    return folder / f"rank_{rank}.log"


def write_own(folder: Path, rank: int) -> None:
    """Send all that this process writes from now on, and its libraries, to the end of its file."""
    sys.stdout.flush()
    sys.stderr.flush()
    with open(log_of(folder, rank), "ab", buffering=0) as file:
        job = os.environ.get("SLURM_JOB_ID", "none")
        file.write(f"rank {rank} on {socket.gethostname()}, job {job}\n".encode())
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)


def last_lines(folder: Path, rank: int) -> str:
    """The end of a process's file, under its name."""
    path = log_of(folder, rank)
    lines = path.read_text(errors="replace").splitlines()[-LINES:] if path.exists() else ["(nothing written)"]
    return "\n".join([f"the last lines of rank {rank} ({path}):", *(f"    {line}" for line in lines)])


class Lost(NamedTuple):
    """A process that has failed, by what has started it: which, on which machine, and how."""

    rank: int
    host: str
    how: str

    @property
    def is_killed(self) -> bool:
        """Whether it had no time to say why."""
        return not self.how.startswith(("Exited", "Terminated"))

    def __str__(self) -> str:
        return f"rank {self.rank} of the training on {self.host} was lost ({self.how})"


# of srun and mpirun
FAILURES = (
    r"\berror: (?P<host>[^\s:]+): tasks? (?P<rank>\d+)\S*: (?P<how>.+)",
    r"\bprocess rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) (?P<how>exited [^.]+)",
)


def first_failed(messages: str) -> Lost | None:
    """The process that has failed first by what srun or mpirun says."""
    for pattern in FAILURES:
        if found := re.search(pattern, messages):
            return Lost(int(found["rank"]), found["host"], " ".join(found["how"].split()))
    return None
