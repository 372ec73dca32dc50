"""Per-element energy shifts by linear least squares on the composition of each structure."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components


class ShiftFit(NamedTuple):
    """The result of :func:`fit_shifts`.

    Attributes:
        shifts: (E,) eV per atom of each element.
        rank: independent compositions; below E the shifts are the solution of least norm.
        indistinguishable: groups of element positions whose shifts the compositions do not determine one by one.
    """

    shifts: np.ndarray
    rank: int
    indistinguishable: list[list[int]]


def fit_shifts(
    counts: np.ndarray, energies: np.ndarray, weights: np.ndarray | None = None, ridge: float = 0.0
) -> ShiftFit:
    """Minimize sum_i w_i (energies_i - counts_i . shifts)^2 / N + ridge shifts^2 in float64.

    Args:
        counts: (N, E) atoms of each element in each structure.
        energies: (N,) eV.
        weights: (N,), not negative; 1 where not given. N is how many are not 0.
        ridge: eV^2 of error that 1 eV^2 of a shift is worth.
    """
    weights = np.ones(len(energies)) if weights is None else np.asarray(weights, np.float64)
    used = weights > 0
    counts = np.asarray(counts, np.float64)[used]
    root = np.sqrt(weights[used])
    basis, null = _row_and_null_space(np.unique(counts, axis=0))
    # solved within the row space, so that rank and least norm follow from the compositions alone, not from the weights
    penalty = np.sqrt(ridge * len(root)) * np.eye(basis.shape[1])
    rows = np.concatenate([root[:, None] * (counts @ basis), penalty])
    targets = np.concatenate([root * np.asarray(energies, np.float64)[used], np.zeros(len(penalty))])
    within, *_ = np.linalg.lstsq(rows, targets)
    return ShiftFit(basis @ within, basis.shape[1], _coupled(null))


def _row_and_null_space(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal bases (E, r) and (E, E - r) of the row space and the null space of a composition matrix (M, E)."""
    if not len(counts):
        return np.zeros((counts.shape[1], 0)), np.eye(counts.shape[1])
    _, singular, rows = np.linalg.svd(counts)
    rank = int((singular > 1e-10 * singular.max(initial=0.0)).sum())
    return rows[:rank].T, rows[rank:].T


def _coupled(null: np.ndarray) -> list[list[int]]:
    """Connected groups of elements that share a null vector: moving energy among them changes no prediction."""
    linked = np.abs(null @ null.T) > 1e-9
    n_groups, group = connected_components(linked)
    members = [np.flatnonzero(group == g) for g in range(n_groups)]
    return [m.tolist() for m in members if linked[m[0], m[0]]]


def composition(numbers: np.ndarray, elements: Sequence[int]) -> np.ndarray:
    """(E,) atoms of each of ``elements`` in one structure."""
    return (numbers[:, None] == np.asarray(elements)).sum(axis=0)
