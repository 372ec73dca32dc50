"""The parent's side of a worker process."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

WORKER = Path(__file__).with_name("worker.py")
LAST_LINES = 15


class WorkerError(Exception):
    """A worker ended; the message holds the last lines of what it said."""


class Worker:
    """A process that holds one engine with one model, batch, precision and mode. Use as a context manager.

    Args:
        engine: ``jax`` or ``torch``.
        case: directory of :func:`preparation.write_case`.
        precision: ``float32`` or ``float64``.
        train: whether its step is a training step; otherwise inference.
        environment: variables that differ from this process's.

    Attributes:
        resident, peak: its resident memory at its last answer and at most, MiB.
    """

    def __init__(
        self, engine: str, case: Path, precision: str, train: bool, environment: Mapping[str, str] | None = None
    ) -> None:
        job = {"engine": engine, "case": str(case), "precision": precision, "train": train}
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115, closed with the worker
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._answer()

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a command of the worker, which works only while it is asked."""
        print(json.dumps({"do": do, **arguments}), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            said = "".join(self._errors.readlines()[-LAST_LINES:])
            raise WorkerError(f"a worker ended with status {self._process.returncode}:\n{said}")
        answer = json.loads(line)
        self.resident, self.peak = answer.pop("rss"), answer.pop("peak")
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()
