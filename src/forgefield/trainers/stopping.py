"""A training that is to end before it is complete: because someone asks, or because its time is nearly over."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

# how long a program is given to say when a job ends
PATIENCE = 10.0


class StopAskedError(Exception):
    """All processes have agreed to end after this step, or in this evaluation."""


class Stop:
    """Whether this process was asked to end its training.

    Attributes:
        started: when the run began, in seconds since the epoch.
        heeded: whether a training looks at this, so that it can be asked instead of ended.
        reason: by whom it was asked, in words.
        needed: seconds that the training takes to come to an end.
        looks, looked: how often, and when last, the training looked at :attr:`asked`, as it does with every batch.
    """

    def __init__(self, started: float | None = None) -> None:
        self.started = time.time() if started is None else started
        self.heeded = False
        self.reason: str | None = None
        self.needed = 0.0
        self.looks, self.looked = 0, 0.0
        self._limits: list[tuple[float, str]] = []

    def ask(self, reason: str) -> None:
        self.reason = self.reason or reason

    def limit(self, end: float, reason: str) -> None:
        """Ask when there is just time enough before ``end``, in seconds since the epoch."""
        self._limits.append((end, reason))

    @property
    def asked(self) -> bool:
        self.looks, self.looked = self.looks + 1, time.monotonic()
        if self.reason is None and self._limits:
            end, reason = min(self._limits)
            if time.time() + self.needed > end:
                self.reason = reason
        return self.reason is not None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Around a training that looks at :attr:`asked` after every step."""
        self.heeded = True
        try:
            yield
        finally:
            self.heeded = False


def end_of_job() -> float | None:
    """When the Slurm job of this process will be ended, in seconds since the epoch; None where there is none."""
    if end := os.environ.get("SLURM_JOB_END_TIME"):
        return float(end)
    if (job := os.environ.get("SLURM_JOB_ID")) is None:
        return None
    command = ["scontrol", "show", "job", "--oneliner", job]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    values = dict(word.split("=", 1) for word in shown.split() if "=" in word)
    try:
        return datetime.fromisoformat(values.get("EndTime", "")).timestamp()
    except ValueError:  # a job without a limit
        return None
