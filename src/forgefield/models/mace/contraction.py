"""MACE's symmetric contraction, evaluated as nested couplings of components.

A dense U tensor of order 3 at l_max 3 has 94,208 entries but holds 8 distinct polynomials with about 80 monomials, so
the products are written out, elementwise over atoms and channels.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.models.mace import cuequivariance
from forgefield.models.mace.couplings import coupling
from forgefield.models.mace.covariants import Covariants, Tree, covariants
from forgefield.models.mace.names import buffer_name, weight_name
from forgefield.models.mace.settings import Kernels, Layer

# relative remainders of rounded U tensors that are dropped
TOLERANCE = {"float32": 1e-6, "float64": 1e-14}

Components = list[jax.Array]


class Product(NamedTuple):
    """The contraction of one layer to features of one degree: the covariants of each order, 1 first."""

    layer: int
    degree: int
    orders: tuple[Covariants, ...]
    kernels: Kernels = "reference"


def products(layer: Layer, buffers: Mapping[str, np.ndarray]) -> tuple[Product, ...]:
    """What the U tensors of one layer hold, for each degree that it gives."""
    return tuple(
        Product(
            layer.index,
            degree,
            tuple(
                covariants(buffers[buffer_name(layer.index, degree, order)], degree)
                for order in range(1, layer.correlation + 1)
            ),
            layer.kernels,
        )
        for degree in range(layer.output_l_max + 1)
    )


def symmetric_contraction(
    product: Product, parameters: Mapping[str, jax.Array], components: Sequence[jax.Array], elements: jax.Array
) -> Components:
    """Equation 10 of Batatia et al. (2022).

    ``components`` are the (l_max + 1)^2 components of the atomic basis, (N, C) each; ``elements`` is (N, Z) one-hot.

    Returns:
        The 2 L + 1 components of covariant features of degree L, (N, C) each.
    """
    dtype = components[0].dtype
    names = [
        weight_name(product.layer, product.degree, order, len(product.orders))
        for order in range(1, len(product.orders) + 1)
    ]
    mixed = [
        jnp.einsum("pk,zkc->zpc", found.mixing.astype(dtype), parameters[name])
        for found, name in zip(product.orders, names, strict=True)
    ]
    n_elements, _, channels = mixed[0].shape
    flat = jnp.concatenate(mixed, axis=1).reshape(n_elements, -1)
    trees = [tree for found in product.orders for tree in found.trees]
    if product.kernels == "cuequivariance":
        result = cuequivariance.weighted_trees(product.degree, trees, flat, components, elements)
    else:
        weights = lax_split(elements @ flat, channels)
        result = _Evaluation(components).weighted_sum(product.degree, list(zip(trees, weights, strict=True)))
    for found, name in zip(product.orders, names, strict=True):
        if (rest := _remainder(found, dtype)) is not None:
            remainder = _evaluate_remainder(*rest, parameters[name], components, elements)
            result = [value + more for value, more in zip(result, remainder, strict=True)]
    return result


def lax_split(array: jax.Array, size: int) -> Components:
    """Equal parts along the last axis; unlike slices, their gradients are joined by one concatenation."""
    return jax.lax.split(array, [size] * (array.shape[-1] // size), axis=array.ndim - 1)


class _Evaluation:
    """Weighted sums of trees; products of two components are made once."""

    def __init__(self, components: Sequence[jax.Array]) -> None:
        self._components = components
        self._pairs: dict[Tree, Components] = {}

    def weighted_sum(self, degree: int, terms: list[tuple[Tree, jax.Array]]) -> Components:
        """Sum of weight x tree, by Horner's scheme: trees with the same last coupling and factor share them."""
        groups = defaultdict(list)
        parts: list[Components] = []
        for tree, weight in sorted(terms, key=lambda term: -len(term[0].degrees)):
            key = (tree.prefix.result, tree.degrees[-1]) if tree.results else None
            swapped = key and key[::-1]
            if len(tree.degrees) > 2 or key in groups:
                groups[key].append((tree.prefix, weight))
            elif swapped in groups:
                groups[swapped].append((Tree(tree.degrees[1:]), weight))
            else:
                parts.append([weight * value for value in self._simple(tree)])
        for (prefix, last), members in sorted(groups.items()):
            inner = self.weighted_sum(prefix, members)
            parts.append(coupled(inner, self._simple(Tree((last,))), coupling(prefix, last, degree)))
        if not parts:
            return [jnp.zeros_like(self._components[0])] * (2 * degree + 1)
        return [reduce(add, values) for values in zip(*parts, strict=True)]

    def _simple(self, tree: Tree) -> Components:
        """The components of one degree, or a product of two."""
        if not tree.results:
            degree = tree.degrees[0]
            return list(self._components[degree**2 : (degree + 1) ** 2])
        if tree not in self._pairs:
            first, second = (self._simple(Tree((degree,))) for degree in tree.degrees)
            self._pairs[tree] = coupled(first, second, coupling(*tree.degrees, tree.result))
        return self._pairs[tree]


def coupled(first: Components, second: Components, symbols: np.ndarray) -> Components:
    """Components of the coupling of two sets of components, the coupling's symbols written out."""
    same = len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))
    return [_bilinear(first, second, symbols[:, :, m], same) for m in range(symbols.shape[2])]


def _bilinear(first: Components, second: Components, matrix: np.ndarray, same: bool) -> jax.Array:
    """Products of one coefficient, up to its sign, are summed first; that saves most multiplications."""
    if same:
        matrix = np.triu(matrix) + np.tril(matrix, -1).T
    sums: dict[int, tuple[float, jax.Array]] = {}
    for a, b in np.argwhere(matrix):
        coefficient, product = float(matrix[a, b]), first[a] * second[b]
        size = round(abs(coefficient) * 1e12)
        if size not in sums:
            sums[size] = coefficient, product
        else:
            leading, total = sums[size]
            sums[size] = leading, total + product if leading * coefficient > 0 else total - product
    return reduce(add, [total if leading == 1.0 else leading * total for leading, total in sums.values()])


def _remainder(found: Covariants, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray] | None:
    """Monomials and coefficients of what the trees leave of a rounded U tensor, if it matters in this precision."""
    if not len(found.monomials):
        return None
    size = np.abs(found.remainder).max(axis=(1, 2))
    scale = TOLERANCE[dtype.name] * max(np.abs(found.mixing).max(initial=0.0), 1e-300)
    kept = size > scale
    return (found.monomials[kept], found.remainder[kept].astype(dtype)) if kept.any() else None


def _evaluate_remainder(
    monomials: np.ndarray,
    coefficients: np.ndarray,
    weights: jax.Array,
    components: Sequence[jax.Array],
    elements: jax.Array,
) -> Components:
    """Sum over monomials and weights of coefficient x weight x monomial, as one matrix product."""
    stacked = jnp.stack(components)
    values = reduce(jnp.multiply, [stacked[monomials[:, i]] for i in range(monomials.shape[1])])
    by_weight = jnp.einsum("dmk,dnc->mknc", coefficients, values)
    return list(jnp.einsum("mknc,nkc->mnc", by_weight, jnp.einsum("nz,zkc->nkc", elements, weights)))
