"""Fixtures shared by all tests."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Read by JAX at its import, also in the processes that tests start: equal functions are compiled once.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Public reference files and pretrained models kept beside the repository; tests skip without them."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("../shared/data is not here")
    return path


@pytest.fixture(scope="session")
def random_mace() -> Callable:
    """A function that makes a MACE with random weights, by default as small as can be; settings as keywords."""
    from forgefield.models.mace.initial import initial_potential
    from forgefield.models.mace.settings import MaceSettings

    def make(elements=(1, 6, 8), seed=0, **settings):
        smallest = {
            "r_max": 3.0,
            "hidden_channels": 2,
            "l_max": 1,
            "correlation": (1,),
            "interactions": ("RealAgnosticResidualInteractionBlock",),
            "n_bessel": 4,
            "polynomial_cutoff": 5,
            "radial_mlp": (4,),
            "mlp_channels": 2,
        }
        return initial_potential(elements, MaceSettings(**(smallest | settings)), seed)

    return make
