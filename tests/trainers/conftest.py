"""Makes the hand-made pair potential importable, and gives data made with it."""

import sys
from pathlib import Path

import h5py
import jax
import numpy as np
import pytest

from forgefield.data.store import StoreWriter
from forgefield.units import Units

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


def write_store(path, structures, units=Units()):  # noqa: B008 Units is frozen
    """A store with a dataset at its root for each further value of the structures."""
    settings = {"units": units, "dtype": np.float64, "has_virial": True, "attributes": {}}
    with StoreWriter(path, n_structures=len(structures), max_atoms=max(map(len, structures)), **settings) as new:
        new.append(structures)
    with h5py.File(path, "r+") as file:
        for key in structures[0].extra:
            file[key] = np.array([s.extra[key] for s in structures])
    return path
