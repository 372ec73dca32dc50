"""Makes the labelled data, and how programs start, importable; gives a small model; JAX uses double precision."""

import sys
from dataclasses import replace
from pathlib import Path

import jax
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]


@pytest.fixture(autouse=True)
def _x64():
    """In all threads: batches are placed in the background."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="session")
def small_potential(random_mace):
    """A MACE of two layers for H and O, with every kind of parameter; its arrays are not to be changed."""
    from labelled_data import SHIFTS

    potential = random_mace(
        tuple(SHIFTS),
        seed=1,
        hidden_channels=4,
        correlation=(3, 2),
        interactions=("RealAgnosticInteractionBlock", "RealAgnosticResidualInteractionBlock"),
        radial_mlp=(8,),
        mlp_channels=4,
        avg_num_neighbors=6.0,
        scale=0.5,
        shift=-0.1,
    )
    return replace(potential, energy_shifts=SHIFTS)
