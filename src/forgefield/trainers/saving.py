"""When checkpoints are written, and their writing beside the training."""

import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from forgefield.trainers.checkpoints import save_checkpoint
from forgefield.trainers.record import Place


class CheckpointWriter:
    """Writes checkpoints in a thread, while training goes on.

    One that is given while another waits to be written takes its place: where a disk is slower than the training, there
    are fewer checkpoints, and nothing waits.

    Args:
        directory: of all checkpoints.
        epochs: between checkpoints at their ends.
        steps, minutes: between checkpoints in an epoch; None for none.
        keep: how many checkpoints stay.

    Attributes:
        seconds: the longest that one took.
    """

    def __init__(self, directory: Path, *, epochs: int, steps: int | None, minutes: float | None, keep: int) -> None:
        self.directory, self.seconds = directory, 0.0
        self._epochs, self._steps, self._minutes, self._keep = epochs, steps, minutes, keep
        self._given = time.monotonic()
        self._last_place: Place | None = None
        self._waiting: deque[tuple[Any, ...]] = deque(maxlen=1)
        self._pool = ThreadPoolExecutor(1, "forgefield-checkpoints")
        self._last: Future[None] | None = None
        self._error: Exception | None = None

    def due_in_epoch(self, step: int) -> bool:
        """Whether one is to be written after so many optimizer steps, in an epoch."""
        if self._steps is not None and step % self._steps == 0:
            return True
        return self._minutes is not None and time.monotonic() - self._given > 60 * self._minutes

    def due_after(self, epoch: int) -> bool:
        """Whether one is to be written after so many epochs."""
        return epoch % self._epochs == 0

    def restored(self, place: Place) -> None:
        """There is no need to write what was just read."""
        self._last_place = place

    def give(self, place: Place, arrays: Mapping[str, np.ndarray], content: dict[str, Any]) -> None:
        """Have a checkpoint written soon.

        Args:
            place: how far the training is.
            arrays: see :func:`~forgefield.trainers.checkpoints.save_checkpoint`; they may not change any more.
            content: likewise.

        Raises:
            OSError: one that was given before could not be written.
        """
        self.check()
        self._given, self._last_place = time.monotonic(), place
        self._waiting.append((place, arrays, content))
        self._last = self._pool.submit(self._write)

    def has(self, place: Place) -> bool:
        """Whether the last one that was given or read is of this place."""
        return self._last_place == place

    def check(self) -> None:
        """OSError, if one could not be written."""
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        """Wait until all is written; raises as :meth:`check` does."""
        if self._last is not None:
            self._last.result()
        self.check()

    def _write(self) -> None:
        try:
            place, arrays, content = self._waiting.popleft()
        except IndexError:  # a newer one, which took its place, was written already
            return
        start = time.monotonic()
        try:
            save_checkpoint(self.directory, place, arrays, content, self._keep)
        except Exception as error:  # noted, for the task may not be the last one, which is waited for
            self._error = error
            return
        self.seconds = max(self.seconds, time.monotonic() - start)
