"""The training's history, one row per epoch."""

import csv
from pathlib import Path
from typing import TypedDict

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


def write_history(path: Path, rows: list[HistoryRow]) -> None:
    """Write all rows as CSV; floats in full, so that equal files mean equal trainings."""
    # checkpoints have the same rows, from which it is written again; to sync both would hold up short epochs
    with atomic_file(path, synced=False) as temporary, open(temporary, "w", newline="") as file:
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
