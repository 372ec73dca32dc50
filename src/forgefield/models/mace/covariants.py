"""Which polynomials of the atomic basis MACE's U tensors hold, as few nested couplings of its components.

A U tensor is contracted with one vector on every axis, so only its symmetric part counts: its many paths collapse to a
few covariant polynomials for each multiset of degrees, 8 cubic ones instead of 23 paths for scalars at l_max 3. Nested
couplings of natural parity span them.
"""

import itertools
import math
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from forgefield.models.mace.trees import (
    RANK_TOLERANCE,
    Cost,
    Monomial,
    Tree,
    candidate_trees,
    coefficients,
    independent_trees,
    polynomials,
)


class Covariants(NamedTuple):
    """A U tensor's content.

    Attributes:
        trees: the polynomials.
        mixing: (trees, k) what each of the tensor's k weights contributes to each polynomial.
        remainder: (monomials, 2L + 1, k) what rounding of the tensor adds, by monomial.
        monomials: (monomials, order) component indices of each monomial of the remainder.
    """

    trees: tuple[Tree, ...]
    mixing: np.ndarray
    remainder: np.ndarray
    monomials: np.ndarray


def covariants(tensor: np.ndarray, degree: int) -> Covariants:
    """Decompose a U tensor, exactly.

    Args:
        tensor: ((2L + 1,) M, ..., M, k), M = (l_max + 1)^2; without its first axis if ``degree`` L is 0.
        degree: L of the result.
    """
    tensor = np.asarray(tensor, np.float64)
    tensor = tensor if degree else tensor[None]
    order = tensor.ndim - 2
    classes = _by_degrees(tensor)
    known = Cost()
    trees: list[Tree] = []
    mixing, remainder, monomials = [], [], []
    # classes of few candidates first: what they need is there for the others
    for key in sorted(classes, key=lambda c: (len(candidate_trees(c, degree)), c)):
        members = classes[key]
        values = np.array(list(members.values()))
        chosen, mix = _fit(list(members), values, candidate_trees(key, degree), known)
        trees += chosen
        mixing.append(mix)
        left = values - sum(
            (np.multiply.outer(coefficients(t, list(members)), m) for t, m in zip(chosen, mix, strict=True)), 0.0
        )
        remainder.append(left)
        monomials.append(np.array(list(members)).reshape(-1, order))
    n_weights = tensor.shape[-1]
    return Covariants(
        tuple(trees),
        np.concatenate([np.zeros((0, n_weights)), *mixing]),
        np.concatenate([np.zeros((0, 2 * degree + 1, n_weights)), *remainder]),
        np.concatenate([np.zeros((0, order), int), *monomials]).astype(int),
    )


def _fit(
    monomials: list[Monomial], values: np.ndarray, candidates: list[Tree], cost: Cost
) -> tuple[list[Tree], np.ndarray]:
    """The cheapest trees that span ``values`` (monomials, 2L + 1, k), and their mixings (trees, k)."""
    target = values.reshape(-1, values.shape[-1])
    rank = np.linalg.matrix_rank(target, tol=RANK_TOLERANCE * np.linalg.norm(target, 2))
    chosen = independent_trees(candidates, monomials, rank, cost)
    if not chosen:
        return [], np.zeros((0, values.shape[-1]))
    columns = np.array([coefficients(tree, monomials).ravel() for tree in chosen])
    return chosen, np.linalg.lstsq(columns.T, target, rcond=None)[0]


def _by_degrees(tensor: np.ndarray) -> dict[tuple[int, ...], dict[tuple[int, ...], np.ndarray]]:
    """Sorted degrees -> monomial (sorted component indices) -> (2L + 1, k) coefficients."""
    degrees = component_degrees(math.isqrt(tensor.shape[1]) - 1)
    classes: dict[tuple[int, ...], dict[tuple[int, ...], np.ndarray]] = defaultdict(dict)
    for index in np.argwhere(np.abs(tensor).max(axis=(0, -1)) > 0):
        members = classes[tuple(sorted(int(degrees[i]) for i in index))]
        monomial = tuple(sorted(int(i) for i in index))
        members[monomial] = members.get(monomial, 0.0) + tensor[(slice(None), *index)]
    return classes


def component_degrees(l_max: int) -> np.ndarray:
    """((l_max + 1)^2,) the degree l of each component."""
    degrees = np.arange(l_max + 1)
    return np.repeat(degrees, 2 * degrees + 1)


def coupling_tensor(l_max: int, order: int, degree: int) -> np.ndarray:
    """The U tensor of a fresh model, shaped as mace-torch's: one path for each distinct polynomial.

    Paths are symmetric, and normalized as mace-torch's: their squares sum to 2L + 1.
    """
    size, cost = (l_max + 1) ** 2, Cost()
    paths = []
    for degrees in itertools.combinations_with_replacement(range(l_max + 1), order):
        candidates = candidate_trees(degrees, degree)
        monomials = sorted({m for tree in candidates for polynomial in polynomials(tree) for m in polynomial})
        columns = np.array([coefficients(tree, monomials).ravel() for tree in candidates])
        rank = np.linalg.matrix_rank(columns, tol=RANK_TOLERANCE) if len(candidates) else 0
        paths += [_dense(tree, size) for tree in independent_trees(candidates, monomials, rank, cost)]
    tensor = np.stack(paths, axis=-1) if paths else np.zeros((2 * degree + 1, *[size] * order, 0))
    return tensor if degree else tensor[0]


def _dense(tree: Tree, size: int) -> np.ndarray:
    """(2L + 1, size, ..., size) symmetric tensor of a tree."""
    tensor = np.zeros((2 * tree.result + 1, *[size] * len(tree.degrees)))
    for m, polynomial in enumerate(polynomials(tree)):
        for monomial, coefficient in polynomial.items():
            places = set(itertools.permutations(monomial))
            for place in places:
                tensor[(m, *place)] = coefficient / len(places)
    return tensor * np.sqrt(2 * tree.result + 1) / np.linalg.norm(tensor)
