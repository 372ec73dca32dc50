"""MACE's symmetric contraction for scalar output, evaluated as sparse polynomials.

A dense U tensor of order 3 at l_max 3 has 94,208 entries but holds 8 distinct polynomials with about 80 monomials, so
the products are written out, elementwise over atoms and channels.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, mul

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.models.mace.invariants import Invariant, invariants
from forgefield.models.mace.names import buffer_name, weight_name

# relative remainders of rounded U tensors that are dropped
TOLERANCE = {"float32": 1e-6, "float64": 1e-13}


def symmetric_contraction(
    parameters: Mapping[str, jax.Array],
    buffers: Mapping[str, np.ndarray],
    layer: int,
    correlation: int,
    components: Sequence[jax.Array],
    elements: jax.Array,
) -> jax.Array:
    """Equation 10 of Batatia et al. (2022) for scalar output.

    ``components`` are the (l_max + 1)^2 components of the atomic basis, (N, C) each; ``elements`` is (N, Z) one-hot.

    Returns:
        (N, C) invariant features.
    """
    dtype = components[0].dtype
    polynomials: list[Invariant] = []
    weights = []
    for order in range(1, correlation + 1):
        found = invariants(buffers[buffer_name(layer, 0, order)], TOLERANCE[dtype.name])
        mixing = np.array([p.mixing for p in found], dtype)
        weights.append(jnp.einsum("pk,zkc->zpc", mixing, parameters[weight_name(layer, 0, order, correlation)]))
        polynomials += found
    n_elements, _, channels = weights[0].shape
    flat = jnp.concatenate(weights, axis=1).reshape(n_elements, -1)
    return _evaluate(polynomials, lax_split(elements @ flat, channels), components)


def lax_split(array: jax.Array, size: int) -> list[jax.Array]:
    """Equal parts along the last axis; unlike slices, their gradients are joined by one concatenation."""
    return jax.lax.split(array, [size] * (array.shape[-1] // size), axis=array.ndim - 1)


def _evaluate(polynomials: Sequence[Invariant], weights: Sequence[jax.Array], components: Sequence[jax.Array]):
    """Sum of weight x polynomial, factored by one component of each monomial: sum_i A_i (sum_p w_p q_pi(A))."""
    cofactors = defaultdict(list)
    for polynomial, weight in zip(polynomials, weights, strict=True):
        for leading, terms in _by_leading_component(polynomial).items():
            if terms == [((), 1.0)]:
                cofactors[leading].append(weight)
            else:
                cofactors[leading].append(weight * _polynomial(terms, components))
    return reduce(add, [components[leading] * reduce(add, parts) for leading, parts in sorted(cofactors.items())])


def _by_leading_component(polynomial: Invariant) -> dict[int, list[tuple[tuple[int, ...], float]]]:
    """Group monomials by their factor of the smallest even degree: every cubic one has such a factor."""
    degree = min(polynomial.degrees, key=lambda value: (value % 2, value))
    groups = defaultdict(list)
    for monomial, coefficient in polynomial.terms:
        position = next(k for k, i in enumerate(monomial) if degree**2 <= i < (degree + 1) ** 2)
        groups[monomial[position]].append((monomial[:position] + monomial[position + 1 :], coefficient))
    return groups


def _polynomial(terms: Sequence[tuple[tuple[int, ...], float]], components: Sequence[jax.Array]) -> jax.Array:
    """Monomials of one coefficient, up to its sign, are summed first; that saves most multiplications."""
    tolerance = TOLERANCE[components[0].dtype.name]
    sums: dict[int, tuple[float, jax.Array]] = {}
    for indices, coefficient in terms:
        product = reduce(mul, [components[i] for i in indices])
        size = round(abs(coefficient) / tolerance)
        if size not in sums:
            sums[size] = coefficient, product
        else:
            first, total = sums[size]
            sums[size] = first, total + product if first * coefficient > 0 else total - product
    return reduce(add, [total if first == 1.0 else first * total for first, total in sums.values()])
