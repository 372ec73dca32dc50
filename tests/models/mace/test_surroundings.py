import numpy as np
import pytest

from forgefield.models.mace.spherical import spherical_harmonics
from forgefield.models.mace.surroundings import pair_harmonics


@pytest.mark.parametrize("l_max", [0, 1, 4])
def test_harmonics_of_pairs_are_those_of_the_formulas(x64, l_max):
    directions = np.random.default_rng(0).normal(size=(20, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    ours = pair_harmonics(directions, l_max)
    assert len(ours) == l_max + 1
    for found, expected in zip(ours, spherical_harmonics(l_max, *directions.T), strict=True):
        np.testing.assert_allclose(found, np.stack(expected, axis=1), atol=1e-14)
