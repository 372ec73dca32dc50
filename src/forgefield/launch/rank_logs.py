"""What each process of a job writes, in a file of its own."""

import os
import re
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TextIO

LINES, NOTHING = 10, "(nothing written)"


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


def write_own(folder: Path, rank: int, begun: float) -> None:
    """Send all that this process writes from now on, and its libraries, to the end of its file, after a headline.

    ``begun`` is when the run was started, in seconds since the epoch, which is the same for all of its processes.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with open(log_of(folder, rank), "ab", buffering=0) as file:
        job = os.environ.get("SLURM_JOB_ID", "none")
        file.write(f"rank {rank} on {socket.gethostname()}, job {job}, {_time(begun)}\n".encode())
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)


def last_lines(folder: Path, rank: int, begun: float) -> str:
    """The end of what a process has written in the run that was started then, under the name of its file."""
    path = log_of(folder, rank)
    text = path.read_text(errors="replace") if path.exists() else ""
    _, headline, own = text.rpartition(f", {_time(begun)}\n")
    lines = own.splitlines()[-LINES:] if headline else []
    return "\n".join([f"the last lines of rank {rank} ({path}):", *(f"    {line}" for line in lines or [NOTHING])])


def _time(begun: float) -> str:
    return datetime.fromtimestamp(begun, UTC).isoformat(sep=" ", timespec="milliseconds")


class Lost(NamedTuple):
    """A process that has failed, by what has started it: which, on which machine, and how."""

    rank: int
    host: str | None
    how: str

    @property
    def is_killed(self) -> bool:
        """Whether it had no time to say why."""
        return not self.how.startswith(("Exited", "Terminated"))

    def __str__(self) -> str:
        return f"rank {self.rank} of the training{f' on {self.host}' if self.host else ''} was lost ({self.how})"


# of srun and mpirun
FAILURES = (
    r"\berror: (?:(?P<host>[^\s:]+): )?tasks? (?P<rank>\d+)(?:\S*: | (?=launch failed: ))(?P<how>.+)",
    r"\bprocess rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) (?P<how>exited [^.]+)",
)


def first_failed(messages: str) -> Lost | None:
    """The process that has failed first by what srun or mpirun says."""
    for pattern in FAILURES:
        if found := re.search(pattern, messages):
            return Lost(int(found["rank"]), found["host"], " ".join(found["how"].split()))
    return None
