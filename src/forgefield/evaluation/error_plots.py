"""Where forces are wrong: errors by element, and by the magnitude of the force."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from forgefield.evaluation.metrics_file import VARIANTS, Part
from forgefield.evaluation.style import COLORS, COLUMN, GREY, plain_logarithm
from forgefield.evaluation.values import read_chunks

MOST_ELEMENTS, RANGES = 16, 12
# magnitudes of forces, eV/Å, in steps of 2 %
FINE = np.geomspace(1e-4, 1e4, 931)


def element_figure(
    elements: Mapping[str, Part], variants: Sequence[str], others: Mapping[str, Mapping[str, Part]] | None = None
) -> Figure:
    """Bars of the MAE of force components by element, with its bootstrap interval; those with most atoms first.

    ``others`` are the elements of another run, by the variants that are its.
    """
    others = others or {}
    labelled = [symbol for symbol, part in elements.items() if getattr(part.errors, variants[0]).forces.n]
    shown = labelled[:MOST_ELEMENTS]
    figure = Figure(figsize=(COLUMN, 1.1 + 0.21 * len(variants) * len(shown)), layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(variants)
    for i, variant in enumerate(variants):
        name, color = VARIANTS[variant], COLORS[variant]
        found = [getattr(others.get(variant, elements)[symbol].errors, variant).forces for symbol in shown]
        mae = np.array([1000 * e.mae for e in found])
        low, high = (np.array([1000 * (e.mae_interval or [e.mae] * 2)[end] for e in found]) for end in (0, 1))
        place = np.arange(len(shown)) + (i - (len(variants) - 1) / 2) * height
        axes.barh(place, mae, height, color=color, label=name)
        axes.errorbar(mae, place, xerr=np.maximum([mae - low, high - mae], 0), fmt="none", ecolor="0.2", elinewidth=0.8)
    atoms = [f"{symbol}  ({elements[symbol].atoms:,})" for symbol in shown]
    axes.set_yticks(np.arange(len(shown)), atoms)
    axes.invert_yaxis()
    which = "" if len(shown) == len(labelled) else f", {len(shown)} of {len(labelled)}"
    axes.set(xlabel="MAE of force components (meV/Å)", ylabel=f"element (atoms{which})")
    figure.legend(loc="outside upper center", ncols=len(variants), handlelength=1.0)
    return figure


def magnitude_figure(predictions: Path, variants: Sequence[str], others: Mapping[str, Path] | None = None) -> Figure:
    """The MAE of force components over the magnitude of the reference force, in ranges of as many atoms.

    ``others`` are files with predictions of the same structures, by the variants that are in them.
    """
    figure = Figure(figsize=(COLUMN, 3.0), layout="constrained")
    axes = figure.subplots()
    for variant in variants:
        name, color = VARIANTS[variant], COLORS[variant]
        magnitude, mae = _by_magnitude((others or {}).get(variant, predictions), variant)
        axes.plot(magnitude, 1000 * mae, color=color, label=name, marker="o", markersize=3)
    axes.set(xscale="log", xlabel="magnitude of the reference force (eV/Å)")
    if any(line.get_ydata().max(initial=0) > 0 for line in axes.lines):  # else nothing that a logarithm could show
        axes.set_yscale("log")
    axes.set_ylabel("MAE of force components (meV/Å)")
    ends = np.array(axes.get_xlim())
    axes.plot(ends, 100 * ends, color=GREY, linewidth=0.8, linestyle="--", label="10 % of the force", zorder=0)
    axes.set_xlim(ends)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            plain_logarithm(axis)
    figure.legend(loc="outside upper center", ncols=min(2, len(variants)), handlelength=1.4)
    return figure


def _by_magnitude(predictions: Path, variant: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean magnitude (eV/Å) of the reference force, and mean absolute error of its components, of each range."""
    atoms, magnitudes, errors = np.zeros((3, len(FINE) + 1))
    for chunk in read_chunks(predictions, variant, stress=False):
        norms, error = chunk.reference["force_norms"][:, 0], np.abs(chunk.errors["forces"]).mean(axis=1)
        present = ~np.isnan(norms) & (norms > 0)
        place = np.searchsorted(FINE, norms[present])
        atoms += np.bincount(place, minlength=len(atoms))
        magnitudes += np.bincount(place, norms[present], len(atoms))
        errors += np.bincount(place, error[present], len(atoms))
    ranges = np.minimum((np.cumsum(atoms) - 0.5 * atoms) / max(atoms.sum(), 1) * RANGES, RANGES - 1).astype(int)
    atoms, magnitudes, errors = (np.bincount(ranges, x, RANGES) for x in (atoms, magnitudes, errors))
    filled = atoms > 0
    return magnitudes[filled] / atoms[filled], errors[filled] / atoms[filled]
