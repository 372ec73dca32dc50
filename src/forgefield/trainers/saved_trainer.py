"""The files of a training: its checkpoints, from which it is continued, and its history."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from forgefield.data.processes import OneProcess, Processes
from forgefield.errors import UserError
from forgefield.files import remove_leftovers
from forgefield.trainers.changes import changed_keys, refuse_changes
from forgefield.trainers.checkpoints import (
    KEEP,
    Checkpoint,
    load_newest,
    save_checkpoint,
    saved_checkpoints,
)
from forgefield.trainers.engine import Engine
from forgefield.trainers.history import HistoryRow, write_history
from forgefield.trainers.record import Place, TrainingRecord
from forgefield.trainers.saving import CheckpointWriter


class SavedTrainer(Engine):
    """A trainer whose state is written and restored.

    Args:
        checkpoint_path: directory for checkpoints.
        checkpoint_every: epochs between them; there is one at the end, too.
        checkpoint_steps, checkpoint_minutes: optimizer steps and minutes between further ones.
        keep_checkpoints: how many stay.
        log_file: CSV file of the history.
        fingerprint: JSON content that must be unchanged when a training is continued.
        processes: that train together; the first of them writes and reads files.

    Attributes:
        notes: JSON content of which checkpoints keep a copy.
    """

    def __init__(
        self,
        *,
        checkpoint_path: Path | str | None,
        checkpoint_every: int,
        checkpoint_steps: int | None,
        checkpoint_minutes: float | None,
        keep_checkpoints: int,
        log_file: Path | str | None,
        fingerprint: Mapping[str, Any] | None,
        processes: Processes | None = None,
    ) -> None:
        self._processes = processes or OneProcess()
        self._checkpoints = None if checkpoint_path is None else Path(checkpoint_path)
        self._writer: CheckpointWriter | None = None
        if self._checkpoints is not None and self._is_main:
            intervals = {"epochs": checkpoint_every, "steps": checkpoint_steps, "minutes": checkpoint_minutes}
            self._writer = CheckpointWriter(self._checkpoints, **intervals, keep=keep_checkpoints)
        self._log_file = None if log_file is None else Path(log_file)
        self._fingerprint: dict[str, Any] = dict(fingerprint or {})
        self.notes: dict[str, Any] = {}
        self._record = TrainingRecord()

    @property
    def _is_main(self) -> bool:
        return self._processes.index == 0

    # -- history -------------------------------------------------------------------------------------------------

    @property
    def best_epoch(self) -> int:
        """The epoch after which the best parameters were taken; 0 before training."""
        return self._record.best_epoch

    @property
    def history(self) -> list[HistoryRow]:
        """One row per finished epoch."""
        return list(self._record.rows)

    @property
    def remarks(self) -> list[str]:
        """What has changed in its course that decides the result; can be appended to."""
        return self._record.remarks

    def _write_history(self) -> None:
        if self._log_file and self._is_main:
            write_history(self._log_file, self._record.rows)

    # -- writing -------------------------------------------------------------------------------------------------

    def save_trainer(self, directory: Path | str) -> None:
        """Write everything that is needed to continue as if nothing had happened into a new checkpoint."""
        if self._is_main:
            save_checkpoint(Path(directory), self._record.place, self._arrays(), self._content(complete=False), KEEP)

    def _content(self, complete: bool) -> dict[str, Any]:
        about = {"fingerprint": self._fingerprint, "notes": self.notes, "complete": complete}
        return {**about, "record": asdict(self._record)}

    def _save(self, complete: bool = False) -> None:
        if self._writer:
            self._writer.give(self._record.place, self._arrays(), self._content(complete))

    def _save_after_epoch(self, complete: bool) -> None:
        if self._writer and (complete or self._writer.due_after(self._record.epoch)):
            self._save(complete)

    def _due_in_epoch(self, step: int) -> bool:
        if self._writer is None:
            return False
        self._writer.check()
        return self._writer.due_in_epoch(step)

    def _has_saved(self) -> bool:
        """Whether the newest checkpoint is that of the present place."""
        return self._writer is None or self._writer.has(self._record.place)

    @property
    def _seconds_of_writing(self) -> float:
        return self._writer.seconds if self._writer else 0.0

    def _finish_writing(self) -> None:
        if self._writer:
            self._writer.finish()

    def _newest_saved(self) -> Path | None:
        """The newest checkpoint, once all are written; None on processes that write none."""
        self._finish_writing()
        kept = saved_checkpoints(self._checkpoints) if self._checkpoints else []
        return kept[0] if kept else None

    def _where_saved(self) -> str:
        if self._checkpoints is None:
            return f"{self._record.place} is not saved, for there is no checkpoint_path"
        return f"{self._record.place} is saved in {self._checkpoints}: the same command continues there"

    # -- continuing ----------------------------------------------------------------------------------------------

    def resume(self, allowed: Collection[str] = ()) -> Place | None:
        """Restore the newest checkpoint in ``checkpoint_path``.

        Args:
            allowed: keys of the fingerprint that may have changed. Where one of these decides the batches, the rest of
                an epoch that was begun is of the new ones.

        Returns:
            How far the training is, or None where there is no checkpoint.

        Raises:
            UserError: it belongs to other settings or data, which are named.
        """
        if self._checkpoints is None:
            raise UserError("checkpoint_path: give one to resume from")
        saved = self._processes.broadcast(self._newest(self._checkpoints, allowed) if self._is_main else None)
        if saved is None:
            return None
        self._restore(saved.arrays, saved.path)
        self._record = TrainingRecord.read(saved.content["record"])
        if self._writer:
            self._writer.restored(self._record.place)
        self._write_history()
        return self._record.place

    def _newest(self, directory: Path, allowed: Collection[str]) -> Checkpoint | None:
        remove_leftovers(directory)
        if (saved := load_newest(directory)) is None:
            return None
        changes = changed_keys(saved.content["fingerprint"], self._fingerprint)
        refuse_changes(saved.path, saved.content, {k: v for k, v in changes.items() if k not in allowed})
        return saved

    def standing(self) -> str:
        """How far the training is and what is best so far, in words."""
        best = f"; the best so far is {self._record.best}" if self._record.best_epoch else ""
        return f"{self._record.place}, step {self._record.step}{best}"
