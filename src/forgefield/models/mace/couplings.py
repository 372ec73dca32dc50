"""Couplings of two real spherical harmonics to a third, in the convention of e3nn."""

from functools import cache

import numpy as np

from forgefield.models.mace.spherical import spherical_harmonics


@cache
def coupling(first: int, second: int, result: int) -> np.ndarray:
    """Wigner 3j symbols of natural parity: (2 first + 1, 2 second + 1, 2 result + 1), of unit norm.

    They are Gaunt coefficients, integrals of three real harmonics over the sphere, scaled; e3nn's have their sign.
    The sum of the degrees must be even.
    """
    degrees = (first, second, result)
    harmonics, weights = sphere_quadrature(max(degrees), len(degrees))
    a, b, c = (harmonics[degree**2 : (degree + 1) ** 2] for degree in degrees)
    integrals = np.einsum("ap,bp,cp,p->abc", a, b, c, weights)
    integrals[np.abs(integrals) < 1e-12] = 0.0
    return integrals / np.linalg.norm(integrals)


def sphere_quadrature(l_max: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Harmonics (components, points) and weights (points,), exact for products of ``order`` harmonics."""
    n = order * l_max + 1
    y, y_weights = np.polynomial.legendre.leggauss(n)
    azimuth = np.arange(n) * 2 * np.pi / n
    radius = np.sqrt(1 - y**2)
    points = np.outer(radius, np.sin(azimuth)), np.outer(y, np.ones(n)), np.outer(radius, np.cos(azimuth))
    components = spherical_harmonics(l_max, *(p.ravel() for p in points))
    return np.array([c for degree in components for c in degree]), np.repeat(y_weights / (2 * n), n)
