"""What a person sees of a training: a bar on a terminal, one plain line per epoch elsewhere."""

import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from forgefield.trainers.history import HistoryRow, summary_line


class TrainingProgress:
    """Reports to stderr. Use as a context manager around the epochs.

    Args:
        epochs: of the whole training.
        steps: per epoch.
        last: of the epochs done before.
        begun: steps of the next one done before.
        quiet: report nothing.
    """

    def __init__(
        self, epochs: int, steps: int, last: HistoryRow | None = None, begun: int = 0, quiet: bool = False
    ) -> None:
        self._epochs, self._steps = epochs, steps
        self._console = Console(stderr=True, highlight=False, quiet=quiet)
        self._quiet = quiet
        self._bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(),
            TextColumn("loss {task.fields[loss]}  valid force MAE {task.fields[forces]}"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task("train", total=epochs * steps, loss="-", **self._fields(last))
        self._bar.update(self._task, advance=begun)

    def step(self, loss: float) -> None:
        self._bar.update(self._task, advance=1, loss=f"{loss:.3g}")

    def epoch(self, row: HistoryRow) -> None:
        self.say(summary_line(row, self._epochs))
        self._bar.update(self._task, **self._fields(row))

    def _fields(self, last: HistoryRow | None) -> dict[str, Any]:
        """What the bar shows after an epoch."""
        done, mae = (last["epoch"], last["valid_forces_mae_meV_per_A"]) if last else (0, None)
        return {
            "completed": done * self._steps,
            "epoch": f"{min(done + 1, self._epochs)}/{self._epochs}",
            "forces": "-" if mae is None else f"{mae:.3g} meV/Å (epoch {done})",
        }

    def say(self, line: str) -> None:
        if self._console.is_terminal:
            self._console.print(line)
        elif not self._quiet:
            print(line, file=sys.stderr, flush=True)

    def __enter__(self) -> "TrainingProgress":
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()
