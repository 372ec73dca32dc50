"""Makes the hand-made pair potential importable, and gives data made with it."""

import sys
from pathlib import Path

import jax
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def x64():
    """Double precision for the tests of one file."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module")
def labelled(x64):
    """50 structures with the Morse potential's own energies, forces and virials."""
    return make_labelled(50)


def make_labelled(n):
    import optax
    from pair_potential import NEIGHBORS, TRUE, arrays, morse_template, random_structures

    from forgefield.trainers import ForceMatching

    trainer = ForceMatching(arrays(TRUE), optax.sgd(0.0), morse_template, NEIGHBORS, batch=10, parallelism="single")
    return trainer.predict(random_structures(n), virial=True)
