"""From the table with one row per structure to the statistics file."""

from typing import Any

import numpy as np
from ase.data import chemical_symbols

from forgefield.config.evaluation import StatisticsConfig
from forgefield.models.potential import Potential
from forgefield.statistics.choice import FIT_TO_ENERGIES, FIT_TO_RESIDUAL, Given
from forgefield.statistics.shifts import ShiftFit, fit_shifts

UNITS = {"energy": "eV", "energy_per_atom": "eV/atom", "forces": "eV/angstrom", "length": "angstrom"}
LISTED_OUTLIERS = 100
BINS = 50


def summarize(
    table: np.ndarray, elements: list[int], potential: Potential, config: StatisticsConfig, given: Given | None
) -> dict[str, Any]:
    """The content of the statistics file.

    Args:
        table: rows as :func:`forgefield.statistics.compute.compute_statistics` collects them.
        elements: atomic numbers of the columns of ``table["counts"]``.
        potential: the model whose energy shifts are corrected.
        config: an outlier lies beyond the median by ``outlier_threshold`` robust standard deviations (1.4826 x the
            median absolute deviation); ``ridge`` is that of the fit.
        given: energy shifts that replace the fitted ones.
    """
    target = table["energy"] - table["model_energy"]
    # errors per atom are what training minimizes and evaluation reports, so they are what the fit minimizes
    weights = np.where(np.isnan(target), 0.0, table["energy_weight"]) / table["n_atoms"] ** 2
    fit = fit_shifts(table["counts"], target, weights, config.ridge)
    old = potential.energy_shifts if potential.pretrained else dict.fromkeys(potential.energy_shifts, 0.0)
    fitted = dict(zip(elements, fit.shifts.tolist(), strict=True))
    corrections = dict.fromkeys(old, 0.0) | (
        fitted if given is None else {z: energy - old[z] for z, energy in given.shifts.items()}
    )
    residual = (target - table["counts"] @ np.array([corrections[z] for z in elements])) / table["n_atoms"]
    fit_to = FIT_TO_RESIDUAL if potential.pretrained else FIT_TO_ENERGIES
    threshold = config.outlier_threshold
    with_forces = ~np.isnan(table["force_max"])
    return {
        "units": UNITS,
        "n_structures": len(table),
        "n_energies": int((weights > 0).sum()),
        "n_forces": int(with_forces.sum()),
        "energy_shifts_from": given.origin if given else fit_to,
        "energy_shifts": _by_symbol({z: old[z] + corrections[z] for z in old}),
        "energy_shift_corrections": _by_symbol(corrections),
        "composition": _describe_fit(fit, elements, int((weights > 0).sum()), given) | {"ridge": config.ridge},
        "residual": {
            "before": _errors(target / table["n_atoms"]) if potential.pretrained else None,
            "after": _errors(residual),
        },
        "energy": _spread(table["energy"]),
        "energy_per_atom": _spread(table["energy"] / table["n_atoms"]),
        "force_rms": _force_rms(table[with_forces]),
        "neighbors": {
            "cutoff": potential.cutoff,
            "average": float(table["neighbors"].sum() / table["n_atoms"].sum()),
        },
        "largest": {
            "atoms": int(table["n_atoms"].max()),
            "neighbors": int(table["most_neighbors"].max()),
            "pairs": int(table["pairs"].max()),
        },
        "histograms": {
            "residual_per_atom": _histogram(residual),
            "force_max": _histogram(table["force_max"]),
        },
        "outliers": {
            "threshold": threshold,
            "force_max": _outliers(table["force_max"], table["source_index"], threshold),
            "residual_per_atom": _outliers(np.abs(residual), table["source_index"], threshold),
        },
    }


def _by_symbol(values: dict[int, float]) -> dict[str, float]:
    return {chemical_symbols[z]: float(v) for z, v in values.items()}


def _describe_fit(fit: ShiftFit, elements: list[int], n_energies: int, given: Given | None) -> dict[str, Any]:
    """Rank of the compositions and, in words, what it means for the shifts."""
    symbols = [chemical_symbols[z] for z in elements]
    groups = [[symbols[i] for i in group] for group in fit.indistinguishable]
    if given is not None:
        note = "the shifts are given, not fitted"
    elif n_energies == 0:
        note = "no structure has an energy: the shifts are unchanged"
    elif groups:
        named = "; ".join(", ".join(group) for group in groups)
        note = (
            f"these compositions cannot tell apart {named}: of all shifts that fit equally well, the least correction "
            "is used; energies of other compositions may be off by a constant"
        )
    else:
        note = "every element's shift is determined"
    return {"elements": symbols, "rank": fit.rank, "indistinguishable": groups, "note": note}


def _errors(errors: np.ndarray) -> dict[str, float] | None:
    """MAE and RMSE of what is not NaN."""
    errors = errors[~np.isnan(errors)]
    if not len(errors):
        return None
    return {"mae": float(np.abs(errors).mean()), "rmse": float(np.sqrt((errors**2).mean()))}


def _spread(values: np.ndarray) -> dict[str, float] | None:
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    return {k: float(f(values)) for k, f in (("min", np.min), ("max", np.max), ("mean", np.mean), ("std", np.std))}


def _force_rms(table: np.ndarray) -> float | None:
    """Root mean square of the force components."""
    return float(np.sqrt(table["force_squares"].sum() / (3 * table["n_atoms"].sum()))) if len(table) else None


def _histogram(values: np.ndarray) -> dict[str, list] | None:
    """How many of the values that are not NaN lie between each two edges."""
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    counts, edges = np.histogram(values, BINS)
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def _outliers(values: np.ndarray, source_index: np.ndarray, threshold: float) -> dict[str, Any]:
    """Frames above median + threshold x 1.4826 x median absolute deviation, the largest first, at most 100 listed."""
    present = ~np.isnan(values)
    values, source_index = values[present], source_index[present]
    if not len(values):
        return {"count": 0, "limit": None, "frames": []}
    median = np.median(values)
    limit = float(median + threshold * 1.4826 * np.median(np.abs(values - median)))
    beyond = np.flatnonzero(values > limit)
    beyond = beyond[np.argsort(-values[beyond], kind="stable")]
    frames = [{"source_index": int(source_index[i]), "value": float(values[i])} for i in beyond[:LISTED_OUTLIERS]]
    return {"count": len(beyond), "limit": limit, "frames": frames}
