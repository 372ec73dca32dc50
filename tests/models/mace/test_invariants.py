import numpy as np
import pytest
import torch

from forgefield.models.mace.invariants import coupling_tensor, invariants
from forgefield.models.mace.spherical import spherical_harmonics
from forgefield.models.mace.torch_reference import quiet_mace


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("l_max", [1, 2, 3])
def test_coupling_tensor_is_that_of_mace_torch(l_max, order):
    with quiet_mace():
        from e3nn import o3
        from mace.tools.cg import U_matrix_real

        harmonics = o3.Irreps.spherical_harmonics(l_max)
        expected = U_matrix_real(harmonics, "0e", order, dtype=torch.float64, use_cueq_cg=False)[-1].numpy()
    np.testing.assert_allclose(coupling_tensor(l_max, order), expected, atol=1e-13)


def test_cubic_polynomials_at_l_max_3():
    found = invariants(coupling_tensor(3, 3), 1e-13)
    degrees = ["".join(map(str, p.degrees)) for p in found]
    assert degrees == ["000", "011", "022", "033", "112", "123", "222", "233"]


def test_polynomials_sum_to_the_tensor():
    tensor = coupling_tensor(2, 3)
    generator = np.random.default_rng(0)
    components, weights = generator.normal(size=9), generator.normal(size=tensor.shape[-1])
    expected = np.einsum("abck,a,b,c,k", tensor, components, components, components, weights)
    assert _evaluate(invariants(tensor, 1e-13), weights, components) == pytest.approx(expected, rel=1e-13)


def test_remainders_of_a_rounded_tensor_are_kept_on_request():
    generator = np.random.default_rng(0)
    rounded = coupling_tensor(2, 3) * (1 + 1e-8 * generator.normal(size=(9, 9, 9, 11)))
    components, weights = generator.normal(size=9), generator.normal(size=11)
    expected = np.einsum("abck,a,b,c,k", rounded, components, components, components, weights)
    exact = _evaluate(invariants(rounded, 1e-13), weights, components)
    coarse = _evaluate(invariants(rounded, 1e-6), weights, components)
    assert exact == pytest.approx(expected, rel=1e-13)
    assert 1e-11 < abs(coarse / expected - 1) < 1e-6


def test_polynomials_are_invariant_under_rotation_and_reflection():
    generator = np.random.default_rng(0)
    points = generator.normal(size=(5, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    rotation = -np.linalg.qr(generator.normal(size=(3, 3)))[0]
    for polynomial in invariants(coupling_tensor(4, 3), 1e-13):
        before, after = (_evaluate([polynomial], None, _density(p)) for p in (points, points @ rotation.T))
        assert before == pytest.approx(after, rel=1e-10, abs=1e-10)


def _density(points):
    """Components A_lm of a handful of neighbors."""
    return np.array([c.sum() for degree in spherical_harmonics(4, *points.T) for c in degree])


def _evaluate(polynomials, weights, components):
    total = 0.0
    for polynomial in polynomials:
        weight = 1.0 if weights is None else polynomial.mixing @ weights
        total += weight * sum(c * np.prod(components[list(m)]) for m, c in polynomial.terms)
    return total
