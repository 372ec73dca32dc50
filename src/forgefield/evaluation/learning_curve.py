"""Loss and validation errors over the epochs of one training."""

import csv
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forgefield.errors import UserError

BLUE, ORANGE = "#0072B2", "#E69F00"  # told apart by color-blind readers (Okabe and Ito)
LOSSES = {"train_loss": ("training", BLUE), "valid_loss": ("validation", ORANGE)}
ERRORS = {
    "valid_forces_mae_meV_per_A": ("forces (meV/Å)", BLUE),
    "valid_energy_mae_meV_per_atom": ("energy (meV/atom)", ORANGE),
}
COLUMNS = ("epoch", *LOSSES, *ERRORS)


def learning_curve_figure(history: Path) -> Figure:
    """Two panels from ``history.csv``: training and validation loss, and the validation MAE of forces and energy."""
    columns = _read(history)
    figure = Figure(figsize=(7.0, 2.8), layout="constrained")
    loss, error = figure.subplots(1, 2)
    _draw(loss, columns, LOSSES)
    loss.set_ylabel("loss")
    _draw(error, columns, ERRORS)
    error.set_ylabel("validation MAE")
    return figure


def _read(history: Path) -> dict[str, np.ndarray]:
    """Columns by name; NaN where an entry is empty."""
    try:
        with open(history, newline="") as file:
            first, *others = csv.DictReader(file)
        rows = [first, *others]
        return {name: np.array([float("nan" if row[name] == "" else row[name]) for row in rows]) for name in COLUMNS}
    except (KeyError, TypeError, ValueError, csv.Error):
        raise UserError(
            f"{history}: expected numbers under {', '.join(COLUMNS)}; `forgefield train` writes it again"
        ) from None


def _draw(axes: Axes, columns: dict[str, np.ndarray], lines: dict[str, tuple[str, str]]) -> None:
    """Logarithmic curves of the columns that have values."""
    for name, (label, color) in lines.items():
        if np.isfinite(columns[name]).any():
            axes.plot(columns["epoch"], columns[name], color=color, label=label, marker=".", markersize=3, linewidth=1)
    axes.set(xlabel="epoch", yscale="log")
    if axes.lines:
        axes.legend(frameon=False)
