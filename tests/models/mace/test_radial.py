import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forgefield.models.mace.radial import cutoff_polynomial, radial_basis
from forgefield.models.mace.settings import MaceSettings


def test_cutoff_polynomial_falls_smoothly_from_one_to_zero(x64):
    ratio = jnp.array([0.0, 1.0 - 1e-9, 1.0, 1.5])
    first = jax.vmap(jax.grad(lambda x: cutoff_polynomial(x, 5)))
    second = jax.vmap(jax.grad(jax.grad(lambda x: cutoff_polynomial(x, 5))))
    np.testing.assert_allclose(cutoff_polynomial(ratio, 5), [1, 0, 0, 0], atol=1e-14)
    np.testing.assert_allclose(first(ratio), 0, atol=1e-12)
    np.testing.assert_allclose(second(ratio), 0, atol=1e-6)


@pytest.mark.parametrize("beyond", [3.0, 6.0])
def test_basis_vanishes_from_the_cutoff_on(x64, potential, beyond):
    settings = MaceSettings.model_validate(potential.config)
    numbers = jnp.full((2, 2), 6)
    basis, cutoff = radial_basis(jnp.array([1.2, beyond]), numbers, potential.buffers, settings)
    assert cutoff is None
    assert (np.abs(basis[0]) > 0).all()
    assert (np.asarray(basis[1]) == 0).all()
