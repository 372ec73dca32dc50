"""The program `forgefield`, which kills itself where the environment says; what the tests of this folder start.

``FORGEFIELD_FOLDER`` is the run's directory, and ``FORGEFIELD_FAULT`` a :class:`Fault` as JSON. Into the file that
``FORGEFIELD_OPERATIONS`` names, the first process writes what it did to the files of the run, so that faults can be
placed there. Python's audit events tell of both, however a checkpoint is written; the package knows nothing of this.
"""

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FAULT, FOLDER, OPERATIONS = "FORGEFIELD_FAULT", "FORGEFIELD_FOLDER", "FORGEFIELD_OPERATIONS"
RANKS = ("OMPI_COMM_WORLD_RANK", "RANK")
# what opens, makes, renames and removes files
EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}
# named relative to the directory that is removed with them
REMOVED = {"os.remove", "os.rmdir"}


@dataclass(frozen=True)
class Fault:
    """Where a training is killed.

    Attributes:
        rank: the process that counts, and dies.
        everyone: kill all processes of the run, those that have started it first.
        step: optimizer step after which it happens ...
        operation: ... at once for 0, else before this one, counted from 1, of the file operations that follow.
        delay: seconds from there, in which the process goes on.
    """

    rank: int
    everyone: bool
    step: int
    operation: int
    delay: float


class Clock:
    """How far this process is: optimizer steps of the training, and file operations since."""

    def __init__(self, folder: str) -> None:
        self.folder, self.step = folder, 0
        self.operations: list[tuple[int, str]] = []

    def start(self) -> None:
        from forgefield.trainers.epoch_trainer import EpochTrainer
        from forgefield.trainers.progress import TrainingProgress

        train, step = EpochTrainer.train, TrainingProgress.step

        def train_from(trainer: EpochTrainer, *words: Any) -> None:
            self.step = trainer.step
            train(trainer, *words)

        def step_done(progress: TrainingProgress, loss: float) -> None:
            self.step += 1
            self.on_step()
            step(progress, loss)

        EpochTrainer.train, TrainingProgress.step = train_from, step_done
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, arguments: tuple) -> None:
        if self.step and event in EVENTS:
            path = str(arguments[0])
            if path.startswith(self.folder) or (event in REMOVED and not path.startswith("/")):
                self.operations.append((self.step, f"{event} {path.removeprefix(self.folder).lstrip('/')}"))
                self.on_operation()

    def on_step(self) -> None:
        """Called after each step."""

    def on_operation(self) -> None:
        """Called before each operation."""


class Killer(Clock):
    """Kills this process, or all, when a fault is due."""

    def __init__(self, folder: str, fault: Fault) -> None:
        super().__init__(folder)
        self._fault, self._done = fault, False

    def on_step(self) -> None:
        if self._fault.operation == 0 and self.step >= self._fault.step:
            self._strike()

    def on_operation(self) -> None:
        since = sum(step >= self._fault.step for step, _ in self.operations)
        if self._fault.operation and since == self._fault.operation:
            self._strike()

    def _strike(self) -> None:
        if self._done:
            return
        self._done = True
        if self._fault.delay:
            threading.Timer(self._fault.delay, self._kill).start()
        else:
            self._kill()

    def _kill(self) -> None:
        if self._fault.everyone:
            # in the order of their start, so that nobody is left to end the others
            for process in sorted(members(self.folder)):
                if process != os.getpid():
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def members(folder: Path | str) -> dict[int, int | None]:
    """All processes of a run, and the ranks of those that have one."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "environ").read_bytes().decode(errors="replace").split("\0")
            names = dict(word.split("=", 1) for word in words if "=" in word)
            if names.get(FOLDER) == str(folder):
                found[int(path.name)] = rank_in(names)
    return found


def rank_in(names: dict[str, str]) -> int | None:
    return next((int(names[name]) for name in RANKS if name in names), None)


def main() -> None:
    from forgefield.cli import main as forgefield

    folder, rank = os.environ[FOLDER], rank_in(dict(os.environ)) or 0
    if FAULT in os.environ:
        fault = Fault(**json.loads(os.environ[FAULT]))
        if rank == fault.rank:
            Killer(folder, fault).start()
    if OPERATIONS not in os.environ or rank:
        forgefield()
    clock = Clock(folder)
    clock.start()
    try:
        forgefield()
    finally:
        if clock.operations:  # which the process that waits for others has none of
            Path(os.environ[OPERATIONS]).write_text(json.dumps(clock.operations))


if __name__ == "__main__":
    main()
