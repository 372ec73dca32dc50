"""Finds the process of a training that no longer answers, so that the others do not wait for it for ever."""

import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from forgefield.data.processes import Processes
from forgefield.trainers.stopping import Stop

# of the time limit: after this part a process that waits asks the others, and each looks for questions so many times
ASK, LOOKS = 0.5, 20


class HangWatch:
    """A thread of each process that ends the training once nothing has happened for too long.

    All wait for the process at fault in a collective operation, and which one it is they do not know. So their threads
    ask one another, by files in a directory that all processes share: only when something is wrong, and however the
    processes are connected otherwise. Use as a context manager; all processes make one at the same time.

    Args:
        directory: for the answers; it is there only while somebody asks.
        processes: that train together.
        stop: which the training looks at with every batch, as a sign of life.
        limit: seconds in which nothing happens.
        end: ends this process, and so the training, with a message.
    """

    def __init__(
        self, directory: Path, processes: Processes, stop: Stop, limit: float, end: Callable[[str], Any]
    ) -> None:
        self._directory, self._index, self._stop, self._limit, self._end = directory, processes.index, stop, limit, end
        self._names = processes.exchange(f"process {os.getpid()} on {socket.gethostname()}")
        # since when this process asks, and the last answer of each process, and when that came
        self._asked: float | None = None
        self._heard: dict[int, tuple[str, float]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="forgefield-hangs", daemon=True)

    def __enter__(self) -> Self:
        if self._index == 0:
            self._remove()  # what a training that was ended has left
        self.start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()
        self._remove()

    def _watch(self) -> None:
        while not self._over.wait(self._limit / LOOKS):
            with suppress(OSError):  # what somebody is removing or cannot write now is looked at again
                self._look()

    def _look(self) -> None:
        now = time.monotonic()
        idle = now - max(self.start, self._stop.looked)
        if idle > ASK * self._limit:
            self._asked = self._asked or now
            self._directory.mkdir(exist_ok=True)
            self._answer(idle)
            self._hear(now)
            # and not only idle, as after all machines were halted
            if now - self._asked > (1 - ASK) * self._limit and (message := self._message(self._asked)):
                self._end(message)
        elif self._asked:
            self._asked, self._heard = None, {}
            self._remove()
        elif self._directory.is_dir():
            self._answer(idle)

    def _answer(self, idle: float) -> None:
        own = {"batches": self._stop.looks, "works": idle < ASK * self._limit, "time": time.monotonic()}
        temporary = self._directory / f"{self._index}.tmp"
        temporary.write_text(json.dumps(own))
        temporary.replace(self._directory / str(self._index))

    def _hear(self, now: float) -> None:
        for index in range(len(self._names)):
            path = self._directory / str(index)
            answer = path.read_text() if path.exists() else ""
            if index not in self._heard or self._heard[index][0] != answer:
                self._heard[index] = (answer, now)

    def _message(self, asked: float) -> str | None:
        """Who is at fault; None where somebody is at work after all."""
        if silent := [i for i, (answer, heard) in self._heard.items() if not answer or heard <= asked]:
            return f"{self._named(silent)} gave no sign of life for {self._limit:g} s, and all others wait"
        answers = {index: json.loads(answer) for index, (answer, _) in self._heard.items()}
        if any(answer["works"] for answer in answers.values()):
            return None
        most = max(answer["batches"] for answer in answers.values())
        behind = [index for index, answer in answers.items() if answer["batches"] < most]
        who = f"{self._named(behind)} waits for data" if behind else "all processes wait for one another"
        return f"{who}, and nothing has happened for {self._limit:g} s"

    def _named(self, indices: list[int]) -> str:
        return ", ".join(f"rank {index} ({self._names[index]})" for index in indices)

    def _remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
