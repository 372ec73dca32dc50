"""Epoch after epoch until a training is done: what is the same for every engine."""

import time
from contextlib import closing
from typing import Any

from forgefield.errors import StoppedError, UserError
from forgefield.trainers.engine import EpochLoader, NotFiniteError
from forgefield.trainers.history import HistoryRow
from forgefield.trainers.progress import TrainingProgress
from forgefield.trainers.saved_trainer import SavedTrainer
from forgefield.trainers.stopping import Stop, StopAskedError

# seconds beyond what a step and a checkpoint took so far, where a training is to end in time
SPARE = 5.0


class EpochTrainer(SavedTrainer):
    """Runs epochs, keeps the best parameters, stops early, and writes history, checkpoints and progress.

    Args:
        early_stopping: stop after this many epochs without a lower validation loss.
        progress: show progress on stderr.
        files: see :class:`~forgefield.trainers.saved_trainer.SavedTrainer`.
    """

    def __init__(self, *, early_stopping: int | None, progress: bool, **files: Any) -> None:
        super().__init__(**files)
        self._patience, self._show = early_stopping, progress and self._is_main
        self._loaders: dict[str, EpochLoader] = {}
        self._stop, self._longest, self._is_compiled = Stop(), 0.0, False

    def train(self, epochs: int, stop: Stop | None = None) -> None:
        """Train until ``epochs`` epochs are done in all, counting those done before or restored by :meth:`resume`.

        Raises:
            UserError: no training data; or a loss is not finite, which names the frames of its batch.
            StoppedError: ``stop`` was asked on a process; a checkpoint was written first.
        """
        self._check_data()
        self._stop = stop or Stop()
        if not self._record.finished(epochs, self._patience):
            for stage in ("training", "validation"):
                if stage in self._loaders:
                    self._loaders[stage].plan(epochs)
            with self._stop.watched():
                self._train_until(epochs)
        self._write_history()

    def _packing(self) -> str | None:
        """A line on how batches are packed, where they are."""
        return None

    def _train_until(self, epochs: int) -> None:
        steps, record = len(self._loaders["training"]), self._record
        last = record.rows[-1] if record.rows else None
        with TrainingProgress(epochs, steps, last, record.partial.steps, quiet=not self._show) as progress:
            if packing := self._packing():
                progress.say(packing)
            try:
                while not record.finished(epochs, self._patience):
                    self._epoch(progress, epochs)
            except StopAskedError:
                raise self._stopped() from None
            if record.epoch < epochs:
                progress.say(f"stopped early: no lower validation loss in the last {self._patience} epochs")
        self._finish_writing()

    def _check_data(self) -> None:
        if "training" not in self._loaders:
            raise UserError("no training data; call set_dataset first")
        if self._patience is not None and "validation" not in self._loaders:
            raise UserError("early_stopping: it needs validation data; give some, or set it to null")

    def _epoch(self, progress: TrainingProgress, epochs: int) -> None:
        record = self._record
        start, partial = time.perf_counter() - record.partial.seconds, record.partial
        try:
            self._train_steps(progress, start)
            valid = self._validate() if "validation" in self._loaders else {}
        except NotFiniteError as error:
            raise UserError(f"epoch {record.epoch + 1}, {error}; {self._way_out()}") from None
        row = HistoryRow(
            epoch=record.epoch + 1,
            step=record.step,
            lr=self._lr(),
            train_loss=partial.loss_sum / partial.steps,
            valid_loss=valid.get("loss"),
            valid_energy_mae_meV_per_atom=_milli(valid.get("energy_mae")),
            valid_forces_mae_meV_per_A=_milli(valid.get("forces_mae")),
            data_wait_ms_per_step=round(1e3 * partial.waited / partial.steps, 3),
            seconds=round(time.perf_counter() - start, 3),
        )
        if record.add(row):
            self._keep_best()
        self._save_after_epoch(complete=record.finished(epochs, self._patience))
        self._write_history()
        progress.epoch(row)

    def _train_steps(self, progress: TrainingProgress, start: float) -> None:
        """The rest of an epoch's steps, with checkpoints between them."""
        partial, before = self._record.partial, self._record.step - self._record.partial.steps
        stop, last = False, time.perf_counter()
        with closing(self._steps(self._record.epoch, partial.steps, lambda n: self._due_in_epoch(before + n))) as steps:
            for done in steps:
                partial.steps += 1
                partial.loss_sum += done.loss
                partial.waited += done.waited
                progress.step(done.loss)
                now = time.perf_counter()
                if self._is_compiled:  # the first step takes far longer than any other
                    self._longest = max(self._longest, now - last)
                partial.seconds, self._is_compiled, last = now - start, True, now
                self._stop.needed = SPARE + 2 * (self._longest + self._seconds_of_writing)
                stop |= done.stop
                if done.settled and self._due_in_epoch(self._record.step):
                    self._save()
        if stop:
            raise StopAskedError

    def _way_out(self) -> str:
        kept = self._newest_saved()
        last = f"; the last good checkpoint is kept: {kept}" if kept else ""
        return f"check the labels of these frames, lower lr or set clip_norm{last}"

    def _stopped(self) -> StoppedError:
        """What is raised by all processes once the checkpoint is written."""
        if not self._has_saved():
            self._save()
        self._finish_writing()
        # none may end while another still writes; and all say the same, whoever is heard
        reasons = self._processes.exchange(self._stop.reason)
        why = next(filter(None, reasons), "as it was asked to")
        return StoppedError(f"stopped {why}; {self._where_saved()}")

    def complete(self, epochs: int) -> str | None:
        """What there is to say of a training that has nothing left to do; None where it has."""
        record = self._record
        if not record.finished(epochs, self._patience):
            return None
        done, key = f"all {record.epoch} epochs are done", "training.epochs (max_epochs)"
        if record.epoch > epochs:
            done = f"{record.epoch} epochs are done, more than the {epochs} that are asked for"
        if record.epoch < epochs:
            done, key = f"it stopped early after epoch {record.epoch}", "training.early_stopping"
        return f"complete: {done}, the best is {record.best}; to train longer, raise {key}"


def _milli(value: float | None) -> float | None:
    return None if value is None else 1000.0 * value
