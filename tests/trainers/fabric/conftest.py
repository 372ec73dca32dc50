"""Makes the small model importable; JAX computes in double precision, to be compared with."""

import sys
from pathlib import Path

import jax
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield
