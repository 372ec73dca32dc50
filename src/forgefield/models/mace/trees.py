"""Polynomials of components A_lm that rotate like a spherical harmonic: components coupled one after another."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from forgefield.models.mace.couplings import coupling

# relative singular values below this are rounding of a U tensor stored in float32
RANK_TOLERANCE = 1e-5

Monomial = tuple[int, ...]


class Tree(NamedTuple):
    """Components coupled one after another: the first two to results[0], that and the third to results[1], ...

    Attributes:
        degrees: l of each factor.
        results: l after each coupling; empty for a single factor.
    """

    degrees: tuple[int, ...]
    results: tuple[int, ...] = ()

    @property
    def result(self) -> int:
        return self.results[-1] if self.results else self.degrees[0]

    @property
    def prefix(self) -> "Tree":
        """The tree without its last factor."""
        return Tree(self.degrees[:-1], self.results[:-1])


@cache
def candidate_trees(degrees: tuple[int, ...], result: int) -> list[Tree]:
    """All trees of these factors, of natural parity, that end in ``result``."""

    def grow(tree: Tree, rest: tuple[int, ...]) -> Iterator[Tree]:
        if not rest:
            if tree.result == result:
                yield tree
            return
        for j in range(abs(tree.result - rest[0]), tree.result + rest[0] + 1, 2):
            yield from grow(Tree((*tree.degrees, rest[0]), (*tree.results, j)), rest[1:])

    orders = {p for p in itertools.permutations(degrees) if len(p) < 2 or p[0] <= p[1]}
    return sorted({tree for p in orders for tree in grow(Tree(p[:1]), p[1:])})


def independent_trees(candidates: Sequence[Tree], monomials: Sequence[Monomial], rank: int, cost: "Cost") -> list[Tree]:
    """The cheapest ``rank`` linearly independent trees among ``candidates``, which ``monomials`` tell apart."""
    chosen: list[Tree] = []
    columns: list[np.ndarray] = []
    remaining = list(candidates)
    while len(chosen) < rank and remaining:
        tree = min(remaining, key=lambda t: (cost(t), t))
        remaining.remove(tree)
        column = coefficients(tree, monomials).ravel()
        if np.linalg.matrix_rank(np.array([*columns, column]), tol=RANK_TOLERANCE) > len(columns):
            chosen.append(tree)
            columns.append(column)
            cost.add(tree)
    return chosen


class Cost:
    """Multiplications that a tree adds to those already chosen."""

    def __init__(self) -> None:
        self._done: set[Tree | tuple[int, int, int]] = set()

    def __call__(self, tree: Tree) -> int:
        return sum(cost for step, cost in self._steps(tree) if step not in self._done)

    def add(self, tree: Tree) -> None:
        self._done |= {step for step, _ in self._steps(tree)}

    @staticmethod
    def _steps(tree: Tree) -> Iterator[tuple[Tree | tuple[int, int, int], int]]:
        if len(tree.degrees) > 1:
            last = (tree.prefix.result, tree.degrees[-1], tree.result)
            yield last, np.count_nonzero(coupling(*last))
            yield tree.prefix, 2 * tree.prefix.result + 1
            if len(tree.degrees) > 2:
                yield tree.prefix.prefix, np.count_nonzero(coupling(*tree.degrees[:2], tree.results[0]))


def coefficients(tree: Tree, monomials: Sequence[Monomial]) -> np.ndarray:
    """(monomials, 2L + 1) coefficients of a tree's polynomials."""
    return np.array([[polynomial.get(m, 0.0) for polynomial in polynomials(tree)] for m in monomials])


@cache
def polynomials(tree: Tree) -> list[Mapping[Monomial, float]]:
    """For each component of the result, monomial -> coefficient."""
    last = tree.degrees[-1]
    if not tree.results:
        return [{(last**2 + m,): 1.0} for m in range(2 * last + 1)]
    symbols = coupling(tree.prefix.result, last, tree.result)
    result = []
    for m in range(2 * tree.result + 1):
        terms: dict[Monomial, float] = defaultdict(float)
        for a, b in np.argwhere(symbols[:, :, m]):
            for monomial, coefficient in polynomials(tree.prefix)[a].items():
                terms[tuple(sorted((*monomial, last**2 + int(b))))] += coefficient * symbols[a, b, m]
        result.append(dict(terms))
    return result
