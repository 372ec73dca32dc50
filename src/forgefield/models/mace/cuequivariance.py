"""Contraction and convolution as polynomials for cuEquivariance, whose CUDA kernels fuse all their terms.

Anywhere but on a GPU, cuEquivariance evaluates them in plain JAX.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.models.mace.couplings import coupling
from forgefield.models.mace.linear import Features
from forgefield.models.mace.settings import Layer, Path
from forgefield.models.mace.surroundings import Surroundings
from forgefield.models.mace.trees import Tree, polynomials

if TYPE_CHECKING:
    from cuequivariance import SegmentedPolynomial

# factors of a term, each an index of weight or component, and its coefficient
Term = tuple[tuple[int, ...], float]


def weighted_trees(
    degree: int, trees: Sequence[Tree], weights: jax.Array, components: Sequence[jax.Array], elements: jax.Array
) -> list[jax.Array]:
    """Sum of weight x tree.

    Args:
        degree: L of the trees' result.
        trees: T polynomials of the components.
        weights: (Z, T C) by element.
        components: (N, C) each.
        elements: (N, Z) one-hot.

    Returns:
        2L + 1 components, (N, C) each.
    """
    if not trees:
        return [jnp.zeros_like(components[0])] * (2 * degree + 1)
    n, channels = components[0].shape
    polynomial = _tree_polynomial(tuple(trees), len(components), channels)
    inputs = [weights, jnp.concatenate(components, axis=1)]
    total = _evaluate(polynomial, inputs, n, [jnp.argmax(elements, axis=1), None, None])
    return list(total.reshape(n, -1, channels).transpose(1, 0, 2))


def convolution(
    sources: Features, weights: Sequence[jax.Array], layer: Layer, around: Surroundings
) -> list[jax.Array | None]:
    """(N, 2l + 1, C) sums over neighbors for each path of ``layer``; None where nothing of its degree is sent.

    ``sources`` are what atoms send; ``weights`` are (R, K, C) for each path.
    """
    used = [path.source < len(sources) for path in layer.paths]
    paths = tuple(path for path, use in zip(layer.paths, used, strict=True) if use)
    n, channels = len(around.elements), sources[0].shape[2]
    # of a row's two atoms, one has the slot's harmonics and the other has zeros
    harmonics = jnp.concatenate(around.harmonics, axis=2).sum(axis=1).transpose(0, 2, 1).reshape(around.atom.size, -1)
    stacked = jnp.concatenate([weight for weight, use in zip(weights, used, strict=True) if use], axis=2)
    sent = jnp.concatenate(sources, axis=1)
    polynomial = _path_polynomial(paths, harmonics.shape[1], sent.shape[1], channels)
    total = _evaluate(
        polynomial,
        [stacked.reshape(len(harmonics), -1), harmonics, sent.reshape(n, -1)],
        n,
        [None, None, around.atom.reshape(-1), around.receiver.reshape(-1)],
    )
    sizes = [(2 * path.message + 1) * channels for path in paths]
    sums = iter(part.reshape(n, -1, channels) for part in jax.lax.split(total, sizes, axis=1))
    return [next(sums) if use else None for use in used]


@cache
def _tree_polynomial(trees: tuple[Tree, ...], n_components: int, channels: int) -> "SegmentedPolynomial":
    """From (weights, components) to the components of the result; one product for each order."""
    n_results = 2 * trees[0].result + 1
    orders: dict[int, list[Term]] = {}
    for i, tree in enumerate(trees):
        terms = orders.setdefault(len(tree.degrees), [])
        for m, polynomial in enumerate(polynomials(tree)):
            terms += [((i, *monomial, m), coefficient) for monomial, coefficient in polynomial.items()]
    operations = [
        ((0, *[1] * order, 2), [len(trees), *[n_components] * order, n_results], terms)
        for order, terms in orders.items()
    ]
    return _polynomial(operations, ["u", "u", "u"], channels)


@cache
def _path_polynomial(paths: tuple[Path, ...], n_harmonics: int, n_sources: int, channels: int) -> "SegmentedPolynomial":
    """From (weights, harmonics, sources) to the components of all paths' messages."""
    terms: list[Term] = []
    start = 0
    for i, path in enumerate(paths):
        symbols = np.sqrt(2 * path.message + 1) * coupling(*path)
        for a, b, m in np.argwhere(symbols):
            factors = (i, path.harmonic**2 + int(b), path.source**2 + int(a), start + int(m))
            terms.append((factors, float(symbols[a, b, m])))
        start += 2 * path.message + 1
    return _polynomial(
        [((0, 1, 2, 3), [len(paths), n_harmonics, n_sources, start], terms)], ["u", "", "u", "u"], channels
    )


def _polynomial(
    operations: Sequence[tuple[tuple[int, ...], list[int], list[Term]]], subscripts: list[str], channels: int
) -> "SegmentedPolynomial":
    """A polynomial of buffers whose segments are ``u`` channels or a single number.

    Each operation names the buffers of its factors, the number of their segments, and its terms.
    """
    import cuequivariance as cue

    products, operands = [], {}
    for buffers, sizes, terms in operations:
        product = cue.SegmentedTensorProduct.from_subscripts(",".join(subscripts[buffer] for buffer in buffers))
        for operand, (buffer, size) in enumerate(zip(buffers, sizes, strict=True)):
            product.add_segments(operand, size * [(channels,) * len(subscripts[buffer])])
            operands[buffer] = product.operands[operand]
        for factors, coefficient in terms:
            product.add_path(*factors, c=coefficient)
        products.append((cue.Operation(buffers), product))
    *inputs, output = (operands[buffer] for buffer in range(len(subscripts)))
    return cue.SegmentedPolynomial(inputs, [output], products)


def _evaluate(
    polynomial: "SegmentedPolynomial", inputs: list[jax.Array], rows: int, indices: list[jax.Array | None]
) -> jax.Array:
    """(rows, ...) the polynomial's output, in the dtype of its inputs; ``indices`` are rows of inputs and output."""
    import cuequivariance_jax as cuex

    method = "uniform_1d" if jax.default_backend() == "gpu" else "naive"
    output = jax.ShapeDtypeStruct((rows, -1), inputs[0].dtype)
    return cuex.segmented_polynomial(polynomial, inputs, [output], indices, method=method)[0]
