"""A chunk of structures and predictions as columns of the predictions file."""

from collections.abc import Mapping, Sequence

import numpy as np

from forgefield.data.structures import Structure
from forgefield.errors import FrameError
from forgefield.evaluation.predictions import UNITS
from forgefield.models.inference import Prediction
from forgefield.statistics.compute import LARGEST
from forgefield.statistics.reference import reference_energy, reference_forces, reference_stress


def reference_columns(structures: Sequence[Structure], stress: bool) -> dict[str, np.ndarray]:
    """Sizes, species and reference labels; NaN where a label does not count."""
    columns = {
        "n_atoms": np.array([len(s) for s in structures]),
        "source_index": np.array([s.source_index for s in structures]),
        "species": _padded([s.numbers for s in structures]),
        "reference/energy": np.array([reference_energy(s) for s in structures]),
        "reference/forces": _padded([reference_forces(s) for s in structures]),
    }
    if stress:
        columns["reference/stress"] = np.array([reference_stress(s) for s in structures])
    return columns


def prediction_columns(variant: str, predictions: Sequence[Prediction], stress: bool) -> dict[str, np.ndarray]:
    """Predictions of one variant; the stress of a structure without a periodic cell is NaN."""
    columns = {
        f"{variant}/energy": np.array([p.energy for p in predictions]),
        f"{variant}/forces": _padded([p.forces for p in predictions]),
    }
    if stress:
        no_stress = np.full((3, 3), np.nan)
        columns[f"{variant}/stress"] = np.array([no_stress if p.stress is None else p.stress for p in predictions])
    return columns


def require_moderate_errors(columns: Mapping[str, np.ndarray], variant: str) -> None:
    """The square of each error must be a number, which it is not for a model that has diverged.

    Raises:
        FrameError: it is not; names the frame.
    """
    for quantity in UNITS:
        if f"{variant}/{quantity}" not in columns:
            continue
        reference = columns[f"reference/{quantity}"]
        error = np.abs(columns[f"{variant}/{quantity}"] - reference)
        wrong = ~np.isnan(reference) & ~(error < LARGEST)  # a NaN is not below anything
        if wrong.any():
            frame = int(columns["source_index"][np.argwhere(wrong)[0][0]])
            raise FrameError(
                frame,
                f"its {quantity} is off by {error[wrong][0]:.3g} {UNITS[quantity]}; a trained model that ends so has "
                "diverged: train again with a lower training.lr",
            )


def _padded(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Stack arrays of unequal length along a new first axis, 0 behind the shorter ones."""
    out = np.zeros((len(rows), max(map(len, rows)), *rows[0].shape[1:]), rows[0].dtype)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out
