"""Epoch after epoch until a training is done: what is the same for every engine."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from forgefield.data.processes import OneProcess, Processes
from forgefield.data.reader import Source
from forgefield.errors import UserError
from forgefield.trainers.checkpoints import (
    Checkpoint,
    load_newest,
    remove_leftovers,
    save_checkpoint,
    saved_checkpoints,
)
from forgefield.trainers.history import HistoryRow, TrainingRecord, write_history
from forgefield.trainers.progress import TrainingProgress


class NotFiniteError(ArithmeticError):
    """The loss or its gradient is NaN or infinite.

    Attributes:
        where: such as ``step 3``, of the epoch and counted from 1.
        frames: the batch's structures, in words.
        state: of the training before that step, where the engine keeps it.
    """

    def __init__(self, where: str, frames: str, state: Any = None) -> None:
        super().__init__(f"{where}: the loss or its gradient is not finite, in {frames}")
        self.where, self.frames, self.state = where, frames, state


class EpochLoader(Protocol):
    """Batches of a source, epoch by epoch; an engine knows more of its own."""

    source: Source

    def __len__(self) -> int:
        """Batches per epoch."""
        ...

    def plan(self, epochs: int) -> None:
        """Prepare epochs 0 to ``epochs - 1``."""
        ...


class EpochTrainer(ABC):
    """Runs epochs, keeps the best parameters, stops early, and writes history, checkpoints and progress.

    Args:
        early_stopping: stop after this many epochs without a lower validation loss.
        checkpoint_path: directory for checkpoints, each ``checkpoint_every`` epochs and at the end.
        log_file: CSV file of the history.
        fingerprint: JSON content that must be unchanged when a training is continued.
        progress: show progress on stderr.
        processes: that train together; the first of them writes and reads files.
    """

    def __init__(
        self,
        *,
        early_stopping: int | None,
        checkpoint_path: Path | str | None,
        checkpoint_every: int,
        log_file: Path | str | None,
        fingerprint: Mapping[str, Any] | None,
        progress: bool,
        processes: Processes | None = None,
    ) -> None:
        self._processes = processes or OneProcess()
        self._patience, self._checkpoint_every = early_stopping, checkpoint_every
        self._checkpoints = None if checkpoint_path is None else Path(checkpoint_path)
        self._log_file = None if log_file is None else Path(log_file)
        self._fingerprint, self._show = dict(fingerprint or {}), progress and self._is_main
        self._loaders: dict[str, EpochLoader] = {}
        self._record = TrainingRecord()

    @property
    def _is_main(self) -> bool:
        return self._processes.index == 0

    # -- what an engine does -------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def step(self) -> int:
        """Optimizer steps done."""

    @property
    @abstractmethod
    def best_params(self) -> Any:
        """The (averaged) parameters of the epoch with the lowest validation loss, or of the last without validation."""

    @abstractmethod
    def _train_epoch(self, epoch: int, on_step: Callable[[float], None]) -> tuple[float, float]:
        """All steps of an epoch: the mean of their losses, and the seconds they waited for data. NotFiniteError."""

    @abstractmethod
    def _validate(self) -> dict[str, float]:
        """Metrics on the validation data, see :func:`forgefield.trainers.metrics.metrics`. Raises NotFiniteError."""

    @abstractmethod
    def _lr(self) -> float | None:
        """The learning rate of the last step."""

    @abstractmethod
    def _keep_best(self) -> None:
        """Copy the parameters as the best so far."""

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """Everything that is needed to continue as if nothing had happened, besides the history."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, np.ndarray], path: Path) -> None:
        """Continue from :meth:`_arrays`, read from ``path``; UserError where they do not fit."""

    # -- training ------------------------------------------------------------------------------------------------

    def train(self, epochs: int) -> None:
        """Train until ``epochs`` epochs are done in all, counting those done before or restored by :meth:`resume`.

        Raises:
            UserError: no training data; or a loss is not finite, which names the frames of its batch.
        """
        self._check_data()
        if not self._record.finished(epochs, self._patience):
            for stage in ("training", "validation"):
                if stage in self._loaders:
                    self._loaders[stage].plan(epochs)
            self._train_until(epochs)
        self._write_history()

    def _packing(self) -> str | None:
        """A line on how batches are packed, where they are."""
        return None

    def _train_until(self, epochs: int) -> None:
        steps_per_epoch = len(self._loaders["training"])
        last = self._record.rows[-1] if self._record.rows else None
        with TrainingProgress(epochs, steps_per_epoch, last, quiet=not self._show) as progress:
            if packing := self._packing():
                progress.say(packing)
            while not self._record.finished(epochs, self._patience):
                row = self._epoch(progress)
                if self._record.add(row):
                    self._keep_best()
                due = row["epoch"] % self._checkpoint_every == 0 or self._record.finished(epochs, self._patience)
                if self._checkpoints and due:
                    self.save_trainer(self._checkpoints)
                self._write_history()
                progress.epoch(row)
            if self._record.epoch < epochs:
                progress.say(f"stopped early: no lower validation loss in the last {self._patience} epochs")

    def _check_data(self) -> None:
        if "training" not in self._loaders:
            raise UserError("no training data; call set_dataset first")
        if self._patience is not None and "validation" not in self._loaders:
            raise UserError("early_stopping: it needs validation data; give some, or set it to null")

    def _epoch(self, progress: TrainingProgress) -> HistoryRow:
        start, epoch, before = time.perf_counter(), self._record.epoch, self.step
        try:
            train_loss, waited = self._train_epoch(epoch, progress.step)
            valid = self._validate() if "validation" in self._loaders else {}
        except NotFiniteError as error:
            raise UserError(f"epoch {epoch + 1}, {error}; {self._way_out()}") from None
        return HistoryRow(
            epoch=epoch + 1,
            step=self.step,
            lr=self._lr(),
            train_loss=train_loss,
            valid_loss=valid.get("loss"),
            valid_energy_mae_meV_per_atom=_milli(valid.get("energy_mae")),
            valid_forces_mae_meV_per_A=_milli(valid.get("forces_mae")),
            data_wait_ms_per_step=round(1e3 * waited / (self.step - before), 3),
            seconds=round(time.perf_counter() - start, 3),
        )

    def _way_out(self) -> str:
        kept = saved_checkpoints(self._checkpoints) if self._checkpoints else []
        last = f"; the last good checkpoint is kept: {kept[0]}" if kept else ""
        return f"check the labels of these frames, lower lr or set clip_norm{last}"

    # -- record and files ----------------------------------------------------------------------------------------

    @property
    def best_epoch(self) -> int:
        """The epoch after which the best parameters were taken; 0 before training."""
        return self._record.best_epoch

    @property
    def history(self) -> list[HistoryRow]:
        """One row per finished epoch."""
        return list(self._record.rows)

    def complete(self, epochs: int) -> str | None:
        """What there is to say of a training that has nothing left to do; None where it has."""
        record = self._record
        if not record.finished(epochs, self._patience):
            return None
        score = "" if record.best_loss is None else f", of validation loss {record.best_loss:.4g}"
        done, key = f"all {record.epoch} epochs are done", "training.epochs (max_epochs)"
        if record.epoch < epochs:
            done, key = f"it stopped early after epoch {record.epoch}", "training.early_stopping"
        return f"complete: {done}, the best is epoch {record.best_epoch}{score}; to train longer, raise {key}"

    def _write_history(self) -> None:
        if self._log_file and self._is_main:
            write_history(self._log_file, self._record.rows)

    def save_trainer(self, directory: Path | str) -> None:
        """Write everything that is needed to continue as if nothing had happened into a new checkpoint."""
        if self._is_main:
            content = {"record": asdict(self._record), "fingerprint": self._fingerprint}
            save_checkpoint(Path(directory), self._record.epoch, self._arrays(), content)

    def resume(self) -> int | None:
        """Restore the newest checkpoint in ``checkpoint_path``.

        Returns:
            The number of epochs that are done, or None where there is no checkpoint.

        Raises:
            UserError: it belongs to other settings or data, which are named.
        """
        if self._checkpoints is None:
            raise UserError("checkpoint_path: give one to resume from")
        saved = self._processes.broadcast(self._newest(self._checkpoints) if self._is_main else None)
        if saved is None:
            return None
        self._restore(saved.arrays, saved.path)
        self._record = TrainingRecord(**saved.content["record"])
        return self._record.epoch

    def _newest(self, directory: Path) -> Checkpoint | None:
        remove_leftovers(directory)
        return load_newest(directory, self._fingerprint)


def _milli(value: float | None) -> float | None:
    return None if value is None else 1000.0 * value
