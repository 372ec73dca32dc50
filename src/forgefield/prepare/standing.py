"""How runs stand: which are complete, at work, stopped or failed, and where."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from forgefield.errors import MachineError, UserError
from forgefield.files import atomic_file
from forgefield.prepare.lock import LOCK, holder
from forgefield.trainers.checkpoints import damage_of, read_content, saved_checkpoints
from forgefield.trainers.record import TrainingRecord

ERROR = "error.txt"


@dataclass(frozen=True)
class Standing:
    """How a run stands.

    Attributes:
        run: its directory.
        state: ``stopped`` is a run that a signal, a time limit or SIGKILL has ended; ``failed`` one with an error;
            ``damaged`` one of whose newest checkpoint, or model, something is missing.
        epoch, step: finished epochs and optimizer steps in its newest checkpoint that can be read.
        epochs: that it was last asked for.
        best_epoch, best_loss: of the lowest validation loss, or of the last epoch without validation data.
        where: which process works on it, or where it goes on, or its error, or what is damaged.
    """

    run: str
    state: Literal["complete", "running", "stopped", "failed", "damaged"]
    epoch: int
    step: int
    epochs: int | None
    best_epoch: int
    best_loss: float | None
    where: str


def find_runs(folder: Path) -> list[Standing]:
    """All runs in a folder, however deep, by name.

    Raises:
        UserError: there is no such folder.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give one in which there are runs")
    runs = (lock.parent for lock in sorted(folder.rglob(LOCK)))
    # in hidden directories data are converted, with locks of their own
    return [standing(run) for run in runs if not any(p.startswith(".") for p in run.relative_to(folder).parts)]


def standing(run: Path) -> Standing:
    """How one run stands."""
    content, damage = _newest_content(run)
    record = TrainingRecord.read(content["record"]) if content else TrainingRecord()
    error = run / ERROR
    config = run / "config.yaml"
    asked = yaml.safe_load(config.read_text())["training"] if config.exists() else {}
    is_done = _is_done(record, asked) and (run / "model").exists()
    if is_done and not damage:
        damage = _damage_of_model(run / "model")
    if process := holder(run):
        state, where = "running", process
    elif damage:
        state, where = "damaged", damage
    elif is_done:
        state, where = "complete", ""
    elif error.exists():
        state, where = "failed", error.read_text().strip()
    else:
        state, where = "stopped", f"continues after {record.place}" if content else "there is no checkpoint"
    return Standing(
        run=str(run),
        state=state,
        epoch=record.epoch,
        step=record.step,
        epochs=asked.get("epochs"),
        best_epoch=record.best_epoch,
        best_loss=record.best_loss,
        where=where,
    )


def _is_done(record: TrainingRecord, asked: Mapping[str, Any]) -> bool:
    """Whether all is done that was last asked for, which may be more than before."""
    return "epochs" in asked and record.finished(asked["epochs"], asked.get("early_stopping"))


def _newest_content(run: Path) -> tuple[dict[str, Any] | None, str | None]:
    """What the newest checkpoint that can be read says, and why no newer one can, of which the arrays are not read."""
    damage = None
    for path in saved_checkpoints(run / "checkpoints"):
        try:
            return read_content(path, quick=True), damage
        except (UserError, MachineError) as error:  # it is damaged, or has just been removed by its training
            damage = damage or str(error)
    return None, damage


def _damage_of_model(model: Path) -> str | None:
    """What is missing of a trained model, of which the weights are not read."""
    if not (model / "model.json").exists():
        reason = f"{model / 'model.json'}: no such file"
    elif damage := damage_of(model / "weights.safetensors"):
        reason = f"{model / 'weights.safetensors'}: {damage}"
    else:
        return None
    return f"{reason}; the command that trains writes it again"


@contextmanager
def noted_error(run: Path) -> Iterator[None]:
    """Leave the line of an error in the run's directory until it goes on."""
    (run / ERROR).unlink(missing_ok=True)
    try:
        yield
    except (UserError, MachineError) as error:
        if run.is_dir():  # else it was not to become a run
            with suppress(OSError), atomic_file(run / ERROR) as file:  # the disk may be full
                file.write_text(f"{error}\n")
        raise
