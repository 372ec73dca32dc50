"""Which polynomials of the atomic basis are invariant: MACE's U tensors, and the few distinct polynomials in them."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from forgefield.models.mace.spherical import spherical_harmonics


class Invariant(NamedTuple):
    """One invariant polynomial of the components A_lm.

    Attributes:
        degrees: sorted l of its factors.
        terms: (component indices, coefficient) of each monomial; the largest coefficient is 1.
        mixing: (k,) what each of the k weights of a U tensor contributes to this polynomial.
    """

    degrees: tuple[int, ...]
    terms: tuple[tuple[tuple[int, ...], float], ...]
    mixing: np.ndarray


def component_degrees(l_max: int) -> np.ndarray:
    """((l_max + 1)^2,) the degree l of each component."""
    degrees = np.arange(l_max + 1)
    return np.repeat(degrees, 2 * degrees + 1)


def coupling_tensor(l_max: int, order: int) -> np.ndarray:
    """The U tensor of scalar output in mace-torch's full basis: ``order`` axes of (l_max + 1)^2 components, then paths.

    A product of one, two or three harmonics has one invariant for each admissible choice of degrees, the integral of
    the product over the sphere. Each is scaled to unit norm; paths are sorted by the last degree, then the others.
    """
    harmonics, weights = _sphere_quadrature(l_max, order)
    letters = "abc"[:order]
    integrals = np.einsum(",".join(f"{a}p" for a in letters) + f",p->{letters}", *[harmonics] * order, weights)
    integrals[np.abs(integrals) < 1e-12] = 0.0
    degrees = component_degrees(l_max)
    paths = []
    for choice in itertools.product(range(l_max + 1), repeat=order):
        last, *first = choice
        block = np.ix_(*[np.flatnonzero(degrees == degree) for degree in (*first, last)])
        if integrals[block].any():
            path = np.zeros_like(integrals)
            path[block] = integrals[block] / np.linalg.norm(integrals[block])
            paths.append(path)
    return np.stack(paths, axis=-1)


def _sphere_quadrature(l_max: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Harmonics (components, points) and weights (points,), exact for products of ``order`` harmonics."""
    n = order * l_max + 1
    y, y_weights = np.polynomial.legendre.leggauss(n)
    azimuth = np.arange(n) * 2 * np.pi / n
    radius = np.sqrt(1 - y**2)
    points = np.outer(radius, np.sin(azimuth)), np.outer(y, np.ones(n)), np.outer(radius, np.cos(azimuth))
    components = spherical_harmonics(l_max, *(p.ravel() for p in points))
    return np.array([c for degree in components for c in degree]), np.repeat(y_weights / (2 * n), n)


def invariants(coupling: np.ndarray, tolerance: float) -> list[Invariant]:
    """The distinct polynomials in a U tensor.

    The tensor is contracted with one vector on every axis, so only its symmetric part counts: its many paths collapse
    to one polynomial for each multiset of degrees. Rounded tensors leave remainders, kept where above ``tolerance``.

    Args:
        coupling: (M, ..., M, k) U tensor, M = (l_max + 1)^2.
        tolerance: relative size below which a remainder is dropped.
    """
    degrees = component_degrees(math.isqrt(coupling.shape[0]) - 1)
    classes: dict[tuple[int, ...], dict[tuple[int, ...], np.ndarray]] = {}
    for index in np.argwhere(np.abs(coupling).max(axis=-1) > 0):
        monomial = tuple(sorted(int(i) for i in index))
        members = classes.setdefault(tuple(sorted(int(degrees[i]) for i in index)), {})
        members[monomial] = members.get(monomial, 0.0) + coupling[tuple(index)].astype(np.float64)
    return [invariant for key in sorted(classes) for invariant in _factorized(key, classes[key], tolerance)]


def _factorized(degrees: tuple[int, ...], members: dict, tolerance: float) -> list[Invariant]:
    """Polynomials whose outer products with their mixings sum to the monomials' coefficients."""
    monomials = list(members)
    left, singular, right = np.linalg.svd(np.array([members[m] for m in monomials]), full_matrices=False)
    result = []
    for column, value, row in zip(left.T, singular, right, strict=True):
        if value <= tolerance * singular[0]:
            break
        largest = column[np.abs(column).argmax()]
        terms = tuple((m, float(c)) for m, c in zip(monomials, column / largest, strict=True) if abs(c) > tolerance)
        result.append(Invariant(degrees, terms, row * value * largest))
    return result
