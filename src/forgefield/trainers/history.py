"""The training's history, one row per epoch, and what follows from it: the best epoch, and when to stop."""

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypedDict

from pydantic import model_validator

from forgefield.config.base import NonNegativeInteger, Section
from forgefield.config.contents import Finite
from forgefield.files import atomic_file


class HistoryRow(TypedDict):
    """One epoch. Entries are None where a training has no validation data or the data no such label.

    ``data_wait_ms_per_step`` is how long the first process waited for a batch, in the mean over the training steps.
    """

    epoch: int
    step: int
    lr: float | None
    train_loss: float
    valid_loss: float | None
    valid_energy_mae_meV_per_atom: float | None
    valid_forces_mae_meV_per_A: float | None
    data_wait_ms_per_step: float
    seconds: float


@dataclass
class TrainingRecord:
    """How far a training is; its fields are JSON content.

    Attributes:
        rows: one per finished epoch.
        best_epoch, best_loss: of the lowest validation loss, or of the last epoch without validation data.
    """

    rows: list[HistoryRow] = field(default_factory=list)
    best_epoch: int = 0
    best_loss: float | None = None

    @property
    def epoch(self) -> int:
        """Finished epochs."""
        return len(self.rows)

    def add(self, row: HistoryRow) -> bool:
        """Append a finished epoch, whose losses are finite; True where it is the best so far."""
        self.rows.append(row)
        loss = row["valid_loss"]
        if loss is not None and self.best_loss is not None and loss >= self.best_loss:
            return False
        self.best_epoch, self.best_loss = row["epoch"], loss
        return True

    def finished(self, epochs: int, patience: int | None) -> bool:
        """All epochs are done, or the last ``patience`` of them brought no lower validation loss."""
        return self.epoch >= epochs or (patience is not None and self.epoch - self.best_epoch >= patience)


class SavedRecord(Section):
    """A :class:`TrainingRecord` as it must stand in a file."""

    rows: list[dict[str, Finite | None]]
    """one row per epoch"""

    best_epoch: NonNegativeInteger
    """the epoch of the lowest validation loss"""

    best_loss: Finite | None
    """the lowest validation loss, or null"""

    @model_validator(mode="after")
    def _columns(self) -> Self:
        if any(row.keys() != HistoryRow.__annotations__.keys() for row in self.rows):
            raise ValueError(f"a row without exactly {', '.join(HistoryRow.__annotations__)}")
        return self


def write_history(path: Path, rows: list[HistoryRow]) -> None:
    """Write all rows as CSV; floats in full, so that equal files mean equal trainings."""
    with atomic_file(path) as temporary, open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(HistoryRow.__annotations__))
        writer.writeheader()
        writer.writerows(rows)


def summary_line(row: HistoryRow, epochs: int) -> str:
    """One line for people."""
    parts = [f"epoch {row['epoch']}/{epochs}", f"train loss {row['train_loss']:.4g}"]
    if row["valid_loss"] is not None:
        parts.append(f"valid loss {row['valid_loss']:.4g}")
    if row["valid_energy_mae_meV_per_atom"] is not None:
        parts.append(f"energy MAE {row['valid_energy_mae_meV_per_atom']:.3g} meV/atom")
    if row["valid_forces_mae_meV_per_A"] is not None:
        parts.append(f"force MAE {row['valid_forces_mae_meV_per_A']:.3g} meV/Å")
    if row["lr"] is not None:
        parts.append(f"lr {row['lr']:.3g}")
    return "  ".join([*parts, f"{row['seconds']:.1f} s"])
