"""What a person sees of a long conversion: a bar on a terminal, elsewhere a plain line now and then; the time left."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

EVERY_SECONDS = 10.0  # between lines, and before the first


class ConversionProgress:
    """Reports to stderr. Use as a context manager around one stage of a conversion.

    Args:
        stage: what is done, such as "reading".
        every: seconds between the lines where there is no terminal.
    """

    def __init__(self, stage: str, every: float = EVERY_SECONDS) -> None:
        self._stage, self._every = stage, every
        self._begin = self._told = time.monotonic()
        self._frames, self._part = 0, 0.0
        console = Console(stderr=True)
        self._is_terminal = console.is_terminal
        columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[frames]} frames"), TimeRemainingColumn())
        self._bar = Progress(
            TextColumn(stage), *columns, console=console, transient=True, disable=not self._is_terminal
        )
        self._task = self._bar.add_task(stage, total=None, frames=0)

    def part(self, done: float) -> None:
        """Take how much is done, from 0 to 1, where that is known."""
        self._part = done

    def frames(self, n: int = 1) -> None:
        """Count frames, and show where the conversion stands if it is time to."""
        self._frames += n
        if self._is_terminal:
            if self._frames % 100 == 0 or n > 1:
                total = 1.0 if self._part else None
                self._bar.update(self._task, total=total, completed=self._part, frames=self._frames)
        elif (now := time.monotonic()) - self._told > self._every:
            self._told = now
            print(self._line(now - self._begin), file=sys.stderr, flush=True)

    def _line(self, seconds: float) -> str:
        if not self._part:
            return f"{self._stage}: {self._frames} frames in {seconds:.0f} s"
        left = seconds * (1 - self._part) / self._part
        return f"{self._stage}: {self._frames} frames, {100 * self._part:.0f} %, about {_duration(left)} left"

    def __enter__(self) -> "ConversionProgress":
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
