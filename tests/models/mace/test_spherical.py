import numpy as np
import pytest
import torch

from forgefield.models.mace.spherical import spherical_harmonics
from forgefield.models.mace.torch_reference import quiet_mace


@pytest.fixture(scope="module")
def directions():
    vectors = np.random.default_rng(0).normal(size=(20, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_equal_to_e3nn(directions):
    with quiet_mace():
        from e3nn import o3

        expected = o3.spherical_harmonics(range(5), torch.tensor(directions), False, "component").numpy()
    ours = [component for degree in spherical_harmonics(4, *directions.T) for component in degree]
    np.testing.assert_allclose(np.stack(ours, axis=1), expected, atol=1e-13)


def test_squares_of_a_degree_sum_to_its_dimension(directions):
    for degree, components in enumerate(spherical_harmonics(4, *directions.T)):
        np.testing.assert_allclose(np.square(components).sum(axis=0), 2 * degree + 1, rtol=1e-13)
