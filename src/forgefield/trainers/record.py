"""How far a training is, and what follows from it: the best epoch, and when to stop."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import Field, model_validator

from forgefield.config.base import NonNegativeInteger, Section
from forgefield.config.contents import Finite
from forgefield.trainers.history import HistoryRow

NAME = re.compile(r"epoch_(\d{6,})(?:_step_(\d{6,}))?")


class Place(NamedTuple):
    """Finished epochs, and steps of the one after them."""

    epoch: int
    steps: int = 0

    @property
    def name(self) -> str:
        """The name of the checkpoint's directory."""
        return f"epoch_{self.epoch:06d}" + (f"_step_{self.steps:06d}" if self.steps else "")

    @classmethod
    def of(cls, path: Path) -> Self | None:
        """The place of a checkpoint's directory; None for any other."""
        match = NAME.fullmatch(path.name)
        return cls(int(match[1]), int(match[2] or 0)) if match else None

    def __str__(self) -> str:
        if not self.steps:
            return f"epoch {self.epoch}"
        steps = f"{self.steps} step{'s' if self.steps > 1 else ''} of epoch {self.epoch + 1}"
        return f"epoch {self.epoch} and {steps}" if self.epoch else steps


@dataclass
class PartialEpoch:
    """What is done of an epoch.

    Attributes:
        steps: of training.
        loss_sum: of these steps, added up one after another, so that an interruption does not change a bit of it.
        waited, seconds: for batches, and in all.
    """

    steps: int = 0
    loss_sum: float = 0.0
    waited: float = 0.0
    seconds: float = 0.0


@dataclass
class TrainingRecord:
    """How far a training is; its fields are JSON content.

    Attributes:
        rows: one per finished epoch.
        best_epoch, best_loss: of the lowest validation loss, or of the last epoch without validation data.
        partial: the epoch after these.
        remarks: what else a reader of the result must know, a line each.
    """

    rows: list[HistoryRow] = field(default_factory=list)
    best_epoch: int = 0
    best_loss: float | None = None
    partial: PartialEpoch = field(default_factory=PartialEpoch)
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """From JSON content that is a :class:`SavedRecord`."""
        return cls(**{**content, "partial": PartialEpoch(**content["partial"])})

    @property
    def epoch(self) -> int:
        """Finished epochs."""
        return len(self.rows)

    @property
    def place(self) -> Place:
        """Finished epochs, and steps of the one after them."""
        return Place(self.epoch, self.partial.steps)

    @property
    def step(self) -> int:
        """Optimizer steps done."""
        return (self.rows[-1]["step"] if self.rows else 0) + self.partial.steps

    @property
    def best(self) -> str:
        """The best epoch and its score, in words."""
        score = "" if self.best_loss is None else f", of validation loss {self.best_loss:.4g}"
        return f"epoch {self.best_epoch}{score}"

    def add(self, row: HistoryRow) -> bool:
        """Append a finished epoch, whose losses are finite; True where it is the best so far."""
        self.rows.append(row)
        self.partial = PartialEpoch()
        loss = row["valid_loss"]
        if loss is not None and self.best_loss is not None and loss >= self.best_loss:
            return False
        self.best_epoch, self.best_loss = row["epoch"], loss
        return True

    def finished(self, epochs: int, patience: int | None) -> bool:
        """All epochs are done, or the last ``patience`` of them brought no lower validation loss."""
        return self.epoch >= epochs or (patience is not None and self.epoch - self.best_epoch >= patience)


class SavedPartial(Section):
    """A :class:`PartialEpoch` as it must stand in a file."""

    steps: NonNegativeInteger
    """steps of the unfinished epoch"""

    loss_sum: Finite
    """the sum of their losses"""

    waited: Finite
    """seconds in which they waited for batches"""

    seconds: Finite
    """seconds of that epoch"""


class SavedRecord(Section):
    """A :class:`TrainingRecord` as it must stand in a file."""

    rows: list[dict[str, Finite | None]]
    """one row per epoch"""

    best_epoch: NonNegativeInteger
    """the epoch of the lowest validation loss"""

    best_loss: Finite | None
    """the lowest validation loss, or null"""

    partial: SavedPartial
    """what is done of the next epoch"""

    remarks: list[str] = Field(default_factory=list)
    """what else a reader of the result must know"""

    @model_validator(mode="after")
    def _columns(self) -> Self:
        if any(row.keys() != HistoryRow.__annotations__.keys() for row in self.rows):
            raise ValueError(f"a row without exactly {', '.join(HistoryRow.__annotations__)}")
        return self
