"""Parity plots: prediction over reference, the start of training beside its end on the same axes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from scipy.ndimage import uniform_filter

from forgefield.errors import UserError
from forgefield.evaluation.metrics_file import AGAIN, Errors
from forgefield.evaluation.predictions import read_rows, real_atoms

BINS = 320
NEARBY = 9
"""Bins, and the odd number of bins along each side of the square in which values count as near."""

Values = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Quantity:
    """One kind of parity plot.

    Attributes:
        name: as in the metrics file.
        label: of the axes, after "reference" or "predicted".
        unit: of the values, in words fit for a label.
        small: a thousandth of the unit, for errors.
        column: name of its column in a group of the predictions file.
        centered: shown relative to the mean of the reference.
    """

    name: str
    label: str
    unit: str
    small: str
    column: str
    centered: bool = False


QUANTITIES = {
    "energy": Quantity("energy_per_atom", "energy − mean reference", "eV/atom", "meV/atom", "energy", True),
    "forces": Quantity("forces", "force component", "eV/Å", "meV/Å", "forces"),
    "stress": Quantity("stress", "stress component", "eV/Å³", "meV/Å³", "stress"),
}


def parity_values(predictions: Path, quantity: Quantity, variant: str) -> Iterator[Values]:
    """Stream the counted (reference, predicted) values of one variant, flat."""
    names = ["n_atoms", f"reference/{quantity.column}", f"{variant}/{quantity.column}"]
    for rows in read_rows(predictions, names):
        reference, predicted = rows[names[1]], rows[names[2]]
        if quantity.column == "energy":
            reference, predicted = reference / rows["n_atoms"], predicted / rows["n_atoms"]
        elif quantity.column == "forces":
            atoms = real_atoms(rows["n_atoms"], reference.shape[1])
            reference, predicted = reference[atoms], predicted[atoms]
        present = ~np.isnan(reference)
        yield reference[present], predicted[present]


def parity_figure(
    predictions: Path, quantity: Quantity, panels: Sequence[tuple[str, str]], errors: Mapping[str, Errors]
) -> Figure:
    """One panel per (variant, title), all with the same axes and color scale.

    Args:
        predictions: a predictions file.
        quantity: what to compare.
        panels: variants of the model with their titles.
        errors: of this quantity, by variant.

    Raises:
        UserError: the predictions file is damaged, holds other values than ``errors`` counts, or some that are no
            numbers.
    """
    for variant, _ in panels:
        _check(predictions, quantity, variant, errors[variant].n)
    center = _reference_mean(predictions, quantity) if quantity.centered else 0.0
    low, high = _common_range(predictions, quantity, [variant for variant, _ in panels], center)
    edges = np.linspace(low, high, BINS + 1)
    counts = [_histogram(parity_values(predictions, quantity, variant), edges + center) for variant, _ in panels]
    densities = [uniform_filter(count, NEARBY, mode="constant") * NEARBY**2 for count in counts]
    norm = LogNorm(1, max(10, *(d.max() for d in densities)))
    figure = Figure(figsize=(0.9 + 3.1 * len(panels), 3.5), layout="compressed")
    all_axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (variant, title), count, density in zip(all_axes, panels, counts, densities, strict=True):
        points = _draw_density(axes, edges, count, density, norm)
        _decorate(axes, quantity, title, errors[variant], (low, high))
    figure.supxlabel(f"reference {quantity.label} ({quantity.unit})", fontsize="medium")
    figure.supylabel(f"predicted {quantity.label} ({quantity.unit})", fontsize="medium")
    figure.colorbar(points, ax=all_axes, label="values nearby", aspect=30, pad=0.02)
    return figure


def _check(predictions: Path, quantity: Quantity, variant: str, n: int) -> None:
    """Are there ``n`` values, all finite? What is drawn from others would be wrong, or nothing."""
    found = 0
    for pair in parity_values(predictions, quantity, variant):
        found += pair[0].size
        if not np.isfinite(pair).all():
            raise UserError(f"{predictions}: {variant}/{quantity.column} holds NaN or infinite values; {AGAIN}")
    if found != n:
        raise UserError(
            f"{predictions}: {found} values of {variant}/{quantity.column} have a reference, but metrics.json counts "
            f"{n}; {AGAIN}"
        )


def _reference_mean(predictions: Path, quantity: Quantity) -> float:
    n, total = 0, 0.0
    for reference, _ in parity_values(predictions, quantity, "reference"):
        n, total = n + reference.size, total + float(reference.sum())
    return total / n


def _common_range(predictions: Path, quantity: Quantity, variants: Sequence[str], center: float) -> tuple[float, float]:
    """Bounds of all references and predictions less ``center``, with a margin."""
    low, high = np.inf, -np.inf
    for variant in variants:
        for reference, predicted in parity_values(predictions, quantity, variant):
            low = min(low, reference.min(initial=np.inf), predicted.min(initial=np.inf))
            high = max(high, reference.max(initial=-np.inf), predicted.max(initial=-np.inf))
    margin = 0.04 * (high - low) or 1e-3
    return low - center - margin, high - center + margin


def _histogram(values: Iterator[Values], edges: np.ndarray) -> np.ndarray:
    """(BINS, BINS) values per cell of a grid, reference along the first axis."""
    return sum(np.histogram2d(reference, predicted, bins=(edges, edges))[0] for reference, predicted in values)


def _draw_density(
    axes: Axes, edges: np.ndarray, counts: np.ndarray, density: np.ndarray, norm: LogNorm
) -> PathCollection:
    """One point per occupied grid cell, which is narrower than the point, so that any number of values can be drawn."""
    centers = (edges[1:] + edges[:-1]) / 2
    x, y = np.nonzero(counts)
    order = np.argsort(density[x, y], kind="stable")  # dense cells on top
    x, y = x[order], y[order]
    return axes.scatter(
        centers[x], centers[y], c=density[x, y], norm=norm, cmap="viridis", s=5, linewidths=0, rasterized=True, zorder=2
    )


def _decorate(axes: Axes, quantity: Quantity, title: str, errors: Errors, limits: tuple[float, float]) -> None:
    axes.plot(limits, limits, color="0.35", linewidth=0.8, zorder=1)
    axes.set(xlim=limits, ylim=limits, aspect="equal", title=title)
    axes.locator_params(nbins=5)
    r2 = "not defined" if errors.r2 is None else f"{errors.r2:.4f}"
    text = (
        f"N = {errors.n:,}\n"
        f"MAE = {1000 * errors.mae:.3g} {quantity.small}\n"
        f"RMSE = {1000 * errors.rmse:.3g} {quantity.small}\n"
        f"R² = {r2}"
    )
    axes.text(0.04, 0.96, text, transform=axes.transAxes, va="top", fontsize="small", linespacing=1.4)
