"""Small models and structures that the tests of models share."""

from collections.abc import Iterator

import jax
import numpy as np
import pytest

from forgefield.data.structures import Structure
from forgefield.models.mace.initial import initial_potential
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.potential import Potential

AGNOSTIC, RESIDUAL = "RealAgnosticInteractionBlock", "RealAgnosticResidualInteractionBlock"
ELEMENTS = (1, 6, 8)


@pytest.fixture(scope="session")
def make_potential():
    """A function that makes a small model for H, C and O with random parameters; settings as keywords."""

    def make(seed: int = 0, **settings) -> Potential:
        small = {
            "r_max": 3.0,
            "hidden_channels": 4,
            "l_max": 2,
            "correlation": (3, 3),
            "interactions": (AGNOSTIC, RESIDUAL),
            "n_bessel": 4,
            "polynomial_cutoff": 5,
            "radial_mlp": (8, 8),
            "mlp_channels": 5,
            "avg_num_neighbors": 6.5,
            "scale": 0.8,
            "shift": -0.1,
        }
        return initial_potential(ELEMENTS, MaceSettings(**(small | settings)), seed)

    return make


@pytest.fixture(scope="session")
def potential(make_potential) -> Potential:
    """A two-layer model with both kinds of interaction block."""
    return make_potential()


@pytest.fixture(scope="session")
def structures() -> list[Structure]:
    """Molecules and cells: odd sizes, skewed, left-handed, smaller than the cutoff, partly periodic, without pairs."""
    generator = np.random.default_rng(1)
    grid = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    points = (grid + generator.uniform(-0.2, 0.2, grid.shape)) * 1.6

    def some(n: int, numbers: list[int], cell=((0.0,) * 3,) * 3, pbc=(False,) * 3, frame=0) -> Structure:
        return Structure(np.array(numbers), points[:n], np.array(cell), np.array(pbc), source_index=frame)

    return [
        some(6, [6, 8, 1, 1, 6, 1]),
        some(3, [8, 1, 1], [[1.9, 0.2, 0.0], [0.1, -0.3, 4.5], [0.3, 2.1, 0.2]], (True, True, True), 1),
        some(2, [6, 8], [[2.1, 0.0, 0.3], [0.0, 9.0, 0.0], [0.2, 0.0, 3.4]], (True, False, True), 2),
        some(1, [1], frame=3),
        Structure(np.array([1, 8]), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 7.0]]), source_index=4),
        some(1, [6], np.eye(3) * 1.7, (True, True, True), 5),
    ]


@pytest.fixture
def x64() -> Iterator[None]:
    """JAX in float64 for one test."""
    with jax.enable_x64(True):
        yield
