"""Small models and stores that statistics are computed from."""

import numpy as np
import pytest

from forgefield.data.store import StoreWriter
from forgefield.units import Units


@pytest.fixture(scope="session")
def untrained(random_mace):
    """A small MACE for H, C and O with random weights and a cutoff of 3 Å."""
    return random_mace()


@pytest.fixture
def write_store(tmp_path):
    """A function that writes structures (eV, Å) to a store in kJ/mol and nm and returns its path."""

    def write(structures, **attributes):
        path = tmp_path / "train.h5"
        with StoreWriter(
            path,
            n_structures=len(structures),
            max_atoms=max(map(len, structures)),
            units=Units("kJ/mol", "nm"),
            dtype=np.float64,
            has_virial=False,
            attributes={"source": "made up", "source_sha256": "", "split": "train", **attributes},
        ) as writer:
            writer.append(structures)
        return path

    return write
