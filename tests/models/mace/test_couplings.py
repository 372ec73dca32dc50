import itertools

import numpy as np
import pytest
import torch

from forgefield.models.mace.couplings import coupling
from forgefield.models.mace.torch_reference import quiet_mace

NATURAL = [
    degrees
    for degrees in itertools.product(range(5), repeat=3)
    if sum(degrees) % 2 == 0 and abs(degrees[0] - degrees[1]) <= degrees[2] <= degrees[0] + degrees[1]
]


@pytest.mark.parametrize("degrees", NATURAL, ids=lambda d: "".join(map(str, d)))
def test_couplings_are_those_of_e3nn(degrees):
    with quiet_mace():
        from e3nn import o3

        expected = o3.wigner_3j(*degrees, dtype=torch.float64).numpy()
    np.testing.assert_allclose(coupling(*degrees), expected, atol=1e-14)
