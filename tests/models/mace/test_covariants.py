from functools import reduce

import numpy as np
import pytest
import torch

from forgefield.models.mace.covariants import coupling_tensor, covariants
from forgefield.models.mace.spherical import spherical_harmonics
from forgefield.models.mace.torch_reference import quiet_mace
from forgefield.models.mace.trees import polynomials

CASES = [(1, 2, 0), (2, 3, 0), (3, 3, 0), (2, 2, 1), (3, 3, 1), (3, 3, 2), (2, 4, 0), (2, 4, 1)]


def reference_tensor(l_max, order, degree):
    """mace-torch's U tensor, its full basis."""
    with quiet_mace():
        from e3nn import o3
        from mace.tools.cg import U_matrix_real

        harmonics, result = o3.Irreps.spherical_harmonics(l_max), o3.Irreps([(1, (degree, (-1) ** degree))])
        return U_matrix_real(harmonics, result, order, dtype=torch.float64, use_cueq_cg=False)[-1].numpy()


def dense_value(tensor, components, weights, degree):
    """(2L + 1,) a U tensor contracted with the same components on each axis."""
    tensor = tensor if degree else tensor[None]
    value = reduce(lambda t, _: np.einsum("ma...,a->m...", t, components), range(tensor.ndim - 2), tensor)
    return value @ weights


def tree_value(found, components, weights):
    """(2L + 1,) the sum of the trees' polynomials, and of what rounding of the tensor adds."""
    total = sum(
        mix @ weights * np.array([_polynomial(p, components) for p in polynomials(tree)])
        for tree, mix in zip(found.trees, found.mixing, strict=True)
    )
    return total + np.einsum("dmk,d,k->m", found.remainder, np.prod(components[found.monomials], axis=1), weights)


def _polynomial(polynomial, components):
    return sum(c * np.prod(components[list(monomial)]) for monomial, c in polynomial.items())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_trees_hold_everything_in_the_tensors_of_mace_torch(case):
    tensor = reference_tensor(*case)
    found = covariants(tensor, case[2])
    generator = np.random.default_rng(0)
    components, weights = generator.normal(size=tensor.shape[-2]), generator.normal(size=tensor.shape[-1])
    expected = dense_value(tensor, components, weights, case[2])
    np.testing.assert_allclose(tree_value(found, components, weights), expected, rtol=1e-12, atol=1e-12)
    assert np.abs(found.remainder).max() < 1e-13


@pytest.mark.parametrize(("case", "paths", "distinct"), [((3, 3, 0), 23, 8), ((3, 3, 1), 51, 12), ((3, 3, 2), 65, 14)])
def test_many_paths_are_few_polynomials(case, paths, distinct):
    tensor = reference_tensor(*case)
    assert tensor.shape[-1] == paths
    assert len(covariants(tensor, case[2]).trees) == distinct
    assert coupling_tensor(*case).shape == (*tensor.shape[:-1], distinct)


def test_cubic_scalars_at_l_max_3():
    found = covariants(coupling_tensor(3, 3, 0), 0)
    classes = sorted("".join(map(str, sorted(tree.degrees))) for tree in found.trees)
    assert classes == ["000", "011", "022", "033", "112", "123", "222", "233"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fresh_tensors_span_what_the_full_basis_spans(case):
    fresh, full = coupling_tensor(*case), reference_tensor(*case)
    components = np.random.default_rng(0).normal(size=(200, full.shape[-2]))
    values = [
        np.array([dense_value(t, c, np.eye(t.shape[-1]), case[2]) for c in components]).reshape(-1, t.shape[-1])
        for t in (fresh, full)
    ]
    assert np.linalg.matrix_rank(values[0]) == fresh.shape[-1] == np.linalg.matrix_rank(np.hstack(values))


def test_remainders_of_a_rounded_tensor_are_kept_apart():
    generator = np.random.default_rng(0)
    exact = reference_tensor(2, 3, 1)
    rounded = exact.astype(np.float32).astype(np.float64)
    found = covariants(rounded, 1)
    components, weights = generator.normal(size=9), generator.normal(size=rounded.shape[-1])
    expected = dense_value(rounded, components, weights, 1)
    np.testing.assert_allclose(tree_value(found, components, weights), expected, rtol=1e-13)
    assert 1e-10 < np.abs(found.remainder).max() < 1e-6
    assert found.trees == covariants(exact, 1).trees


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_polynomials_turn_with_the_atoms(degree):
    generator = np.random.default_rng(0)
    points = generator.normal(size=(5, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    turn = -np.linalg.qr(generator.normal(size=(3, 3)))[0]
    tensor = coupling_tensor(3, 3, degree)
    before, after = (
        dense_value(tensor, _density(p), np.eye(tensor.shape[-1]), degree) for p in (points, points @ turn.T)
    )
    some = generator.normal(size=(50, 3))
    some /= np.linalg.norm(some, axis=1, keepdims=True)
    old, new = (np.array(spherical_harmonics(degree, *p.T)[degree]).T for p in (some, some @ turn.T))
    matrix = np.linalg.lstsq(old, new, rcond=None)[0]
    np.testing.assert_allclose(after, matrix.T @ before, atol=1e-10)


def _density(points):
    """Components A_lm of a handful of neighbors."""
    return np.array([c.sum() for degree in spherical_harmonics(3, *points.T) for c in degree])
