"""Two labelled frames and a config that reads them."""

import ase
import numpy as np
import pytest
from ase.calculators.singlepoint import SinglePointCalculator

from forgefield.config.dataset import DatasetConfig
from forgefield.data.sources import Source, find_files


@pytest.fixture
def frames():
    """A molecule and a crystal, both with energy, forces and stress as their calculators give them."""
    random = np.random.default_rng(0)
    molecule = ase.Atoms("OHH", random.uniform(0, 4, (3, 3)))
    crystal = ase.Atoms("NaCl", [[0, 0, 0], [2.8, 0.1, 0]], cell=[[5.6, 0, 0], [0.2, 5.5, 0], [0, 0.3, 5.4]], pbc=True)
    for atoms in (molecule, crystal):
        results = {"energy": random.normal(), "forces": random.normal(size=(len(atoms), 3))}
        if atoms.pbc.any():
            results["stress"] = random.normal(size=6)
        atoms.calc = SinglePointCalculator(atoms, **results)
    return [molecule, crystal]


@pytest.fixture
def read():
    """A function of a path and dataset settings: the structures and rejected frames, and the used-up source."""

    def read(path, **config):
        source = Source(DatasetConfig(source=str(path), **config), find_files(str(path)))
        return list(source), source

    return read
