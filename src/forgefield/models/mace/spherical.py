"""Real spherical harmonics in the convention of e3nn."""

import math
from typing import Any


def spherical_harmonics(l_max: int, x: Any, y: Any, z: Any) -> list[list[Any]]:
    """Component-normalized real spherical harmonics: the squares of degree l sum to 2l + 1.

    The polar axis is y and the azimuth runs from z to x; orders run from -l (sines) to l (cosines).
    Associated Legendre functions by their recursion in l, divided by sin^m so that everything is a polynomial.

    The arguments are the components of unit vectors, numpy or JAX arrays of one shape.

    Returns:
        For each degree l, its 2l + 1 components, each of the shape of ``x``.
    """
    one = x * 0 + 1
    cosine, sine = [one], [x * 0]
    for m in range(l_max):
        cosine.append(cosine[m] * z - sine[m] * x)
        sine.append(sine[m] * z + cosine[m] * x)
    legendre: dict[tuple[int, int], Any] = {}
    for m in range(l_max + 1):
        legendre[m, m] = one * math.prod(range(1, 2 * m, 2))
        for degree in range(m + 1, l_max + 1):
            before = legendre.get((degree - 2, m), 0)
            upper = (2 * degree - 1) * y * legendre[degree - 1, m] - (degree + m - 1) * before
            legendre[degree, m] = upper / (degree - m)
    return [
        [
            _norm(degree, abs(m)) * legendre[degree, abs(m)] * (sine[-m] if m < 0 else cosine[m])
            for m in range(-degree, degree + 1)
        ]
        for degree in range(l_max + 1)
    ]


def _norm(degree: int, m: int) -> float:
    ratio = math.factorial(degree - m) / math.factorial(degree + m)
    return math.sqrt((2 * degree + 1) * (2 if m else 1) * ratio)
