"""Parity plots: prediction over reference, before training beside after, and the distributions of both's errors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from scipy.ndimage import uniform_filter

from forgefield.evaluation.errors import Errors
from forgefield.evaluation.metrics_file import VARIANTS
from forgefield.evaluation.parity_values import ParityValues, Quantity
from forgefield.evaluation.style import COLORS, COLUMN, WIDE

BINS = 320
NEARBY = 9
"""Bins, and the odd number of bins along each side of the square in which values count as near."""
DENSE = 2000
"""More values than this are colored by how many are near."""
ERROR_BINS, ERROR_RANGE = 80, 4.0
"""Bins of the histogram of errors of many values, and how many times the largest RMSE it reaches to both sides."""


def parity_figure(
    predictions: Path,
    split: str,
    quantity: Quantity,
    variants: Sequence[str],
    errors: Mapping[str, Errors],
    others: Mapping[str, Path] | None = None,
) -> Figure:
    """One panel per variant, all with the same axes and color scale, above a histogram of the errors of all.

    Args:
        predictions: a predictions file.
        split: of the data, which the titles name.
        quantity: what to compare.
        variants: of the model, of which there are panels.
        errors: of this quantity, by variant, of which there are histograms.
        others: files with predictions of the same structures, by the variants that are in them.

    Raises:
        UserError: the predictions file is damaged, holds other values than ``errors`` counts, or some that are no
            numbers.
    """
    values = ParityValues(predictions, quantity, others)
    for variant in errors:
        values.check(variant, errors[variant].n)
    low, high = _common_range(values, variants)
    edges = np.linspace(low, high, BINS + 1)
    counts = {variant: _histogram(values, variant, edges) for variant in variants}
    dense = max(errors[variant].n for variant in variants) > DENSE
    width = WIDE if len(variants) > 1 else COLUMN
    heights = ((0.62 * width if len(variants) > 1 else 2.85) + 0.4 * dense, 1.45)
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=heights)
    panels = top.subplots(1, len(variants), sharex=True, sharey=True, squeeze=False)[0]
    points = _draw_points(panels, edges, counts, dense)
    for axes, variant in zip(panels, variants, strict=True):
        _decorate(
            axes, quantity, f"{VARIANTS[variant]} ({split})", errors[variant], (low, high), values.spread(variant)
        )
    panels[0].set_ylabel(fill(f"predicted {values.label} ({quantity.unit})", width=26))
    top.supxlabel(f"reference {values.label} ({quantity.unit})", fontsize="medium")
    if dense:
        top.colorbar(points, ax=panels, label="values nearby", location="top", aspect=40, pad=0.03)
    _draw_errors(bottom.subplots(), values, quantity, errors)
    return figure


def _common_range(values: ParityValues, variants: Sequence[str]) -> tuple[float, float]:
    """Bounds of all references and predictions, with a margin."""
    low, high = np.inf, -np.inf
    for variant in variants:
        for pair in values.of(variant):
            low = min(low, *(x.min(initial=np.inf) for x in pair))
            high = max(high, *(x.max(initial=-np.inf) for x in pair))
    margin = 0.04 * (high - low) or 1e-3
    return low - margin, high + margin


def _histogram(values: ParityValues, variant: str, edges: np.ndarray) -> np.ndarray:
    """(BINS, BINS) values per cell of a grid, reference along the first axis."""
    return sum(np.histogram2d(*pair, bins=(edges, edges))[0] for pair in values.of(variant))


def _draw_points(
    panels: Sequence[Axes], edges: np.ndarray, counts: Mapping[str, np.ndarray], dense: bool
) -> PathCollection:
    """One point per occupied grid cell, which is narrower than the point, so that any number of values can be drawn."""
    centers = (edges[1:] + edges[:-1]) / 2
    densities = [uniform_filter(count, NEARBY, mode="constant") * NEARBY**2 for count in counts.values()]
    norm = LogNorm(1, max(10, *(density.max() for density in densities)))
    for axes, (variant, count), density in zip(panels, counts.items(), densities, strict=True):
        x, y = np.nonzero(count)
        order = np.argsort(density[x, y], kind="stable")  # dense cells on top
        x, y = x[order], y[order]
        look = {"c": density[x, y], "norm": norm, "cmap": "viridis"} if dense else {"c": COLORS[variant]}
        size = {"s": 4 if dense else 9, "linewidths": 0, "rasterized": True, "zorder": 2}
        size |= {} if dense else {"alpha": 0.6}
        points = axes.scatter(centers[x], centers[y], **look, **size)
    return points


def _decorate(
    axes: Axes, quantity: Quantity, title: str, errors: Errors, limits: tuple[float, float], spread: float
) -> None:
    axes.plot(limits, limits, color="0.35", linewidth=0.8, zorder=1)
    axes.set(xlim=limits, ylim=limits, aspect="equal", title=title)
    axes.locator_params(nbins=4)
    # of what is shown, without what the composition tells of energies
    r2 = f"{1 - errors.n * errors.rmse**2 / spread:.4f}" if spread > 0 else "–"
    unit = quantity.small
    text = {"fontsize": 8.5, "linespacing": 1.2, "transform": axes.transAxes}
    errors_in_words = f"MAE {1000 * errors.mae:.3g} {unit}\nRMSE {1000 * errors.rmse:.3g} {unit}"
    # the two corners that the line does not cross
    axes.text(0.04, 0.97, errors_in_words, va="top", **text)
    axes.text(0.97, 0.03, f"N = {errors.n:,}\nR² {r2}", ha="right", va="bottom", **text)


def _draw_errors(axes: Axes, values: ParityValues, quantity: Quantity, errors: Mapping[str, Errors]) -> None:
    """Histograms of the errors of all variants over one another, in thousandths of the unit."""
    reach = 1000 * min(max(e.max for e in errors.values()), ERROR_RANGE * max(e.rmse for e in errors.values())) or 1.0
    bins = min(ERROR_BINS, 2 * int(next(iter(errors.values())).n ** 0.5) + 3)
    edges = np.linspace(-reach, reach, bins + 1)
    for variant in errors:
        name, color = VARIANTS[variant], COLORS[variant]
        pairs = values.of(variant)
        counts = sum(np.histogram(1000 * (predicted - reference), edges)[0] for reference, predicted in pairs)
        axes.stairs(counts, edges, fill=True, color=color, alpha=0.25)
        axes.stairs(counts, edges, color=color, label=name)
    axes.axvline(0.0, ymax=0.7, color="0.35", linewidth=0.8, zorder=0)
    axes.set(xlabel=f"error ({quantity.small})", ylabel="number", yscale="log", xlim=(-reach, reach))
    axes.locator_params(axis="x", nbins=6)
    low, high = 0.7, axes.get_ylim()[1]
    axes.set_ylim(low, high * (high / low) ** 0.5)  # room for the legend
    axes.legend(loc="upper center", ncols=len(errors), handlelength=1.0, columnspacing=1.0)
