"""Loss and validation errors over the epochs of one training, and which epoch's model was kept."""

import csv
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forgefield.errors import UserError
from forgefield.evaluation.style import BLUE, COLUMN, ORANGE, plain_logarithm

LOSSES = {"train_loss": ("training", ORANGE), "valid_loss": ("validation", BLUE)}
ERRORS = {
    "valid_forces_mae_meV_per_A": ("forces (meV/Å)", BLUE),
    "valid_energy_mae_meV_per_atom": ("energy (meV/atom)", ORANGE),
}
COLUMNS = ("epoch", *LOSSES, *ERRORS)
MARKED = 40
"""Epochs up to which each has a point."""


def learning_curve_figure(history: Path) -> Figure:
    """Training and validation loss above the validation MAE of forces and energy, from ``history.csv``."""
    columns = _read(history)
    figure = Figure(figsize=(COLUMN, 3.9), layout="constrained")
    loss, error = figure.subplots(2, 1, sharex=True)
    best = _best(columns)
    _draw(loss, columns, LOSSES, best)
    loss.set_ylabel("loss")
    star = {"color": "w", "marker": "*", "markersize": 9, "markeredgecolor": "0.1"}
    loss.plot([], [], **star, label=f"best epoch: {columns['epoch'][best]:.0f}")
    _draw(error, columns, ERRORS, best)
    error.set(xlabel="epoch", ylabel="validation MAE")
    for axes in (loss, error):
        if not axes.lines:
            axes.text(0.5, 0.5, "no validation data", transform=axes.transAxes, ha="center")
            continue
        plain_logarithm(axes.yaxis)
        axes.set_title(" ")  # room for the legend, which may be wider than the axes
        place = {"loc": "lower right", "bbox_to_anchor": (1.04, 0.97), "ncols": 3}
        axes.legend(**place, handlelength=1.2, handletextpad=0.4, columnspacing=1.2).set_in_layout(False)
    error.xaxis.get_major_locator().set_params(integer=True)
    return figure


def _best(columns: dict[str, np.ndarray]) -> int:
    """The row whose model was kept: of the lowest validation loss, the first of equals, or the last without any."""
    loss = columns["valid_loss"]
    return int(np.nanargmin(loss)) if np.isfinite(loss).any() else len(loss) - 1


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


def _draw(axes: Axes, columns: dict[str, np.ndarray], lines: dict[str, tuple[str, str]], best: int) -> None:
    """Logarithmic curves of the columns that have values, each with a star at the best epoch."""
    epoch = columns["epoch"]
    marker = "." if len(epoch) <= MARKED else None
    for name, (label, color) in lines.items():
        if np.isfinite(columns[name]).any():
            axes.plot(epoch, columns[name], color=color, label=label, marker=marker, markersize=4)
            axes.plot(epoch[best], columns[name][best], color=color, marker="*", markersize=9, markeredgecolor="0.1")
    if axes.lines:
        axes.set_yscale("log")
