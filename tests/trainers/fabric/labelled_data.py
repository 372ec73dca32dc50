"""Labelled structures of uneven sizes and the settings of a run, for both engines."""

import numpy as np

from forgefield.config import load_config
from forgefield.data.structures import Structure

SHIFTS = {1: -13.6, 8: -430.0}


def labelled_structures(n, seed=0):
    """1 to 9 atoms; every other structure periodic with a virial, some without energy; one atom alone has no edge."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(3)] * 3), axis=-1).reshape(-1, 3)
    structures = []
    for i in range(n):
        size = 1 if i == 1 else int(rng.integers(2, 10))
        numbers = rng.choice([1, 8], size)
        periodic = i % 2 == 0
        structures.append(
            Structure(
                numbers,
                1.5 * rng.permutation(grid)[:size] + rng.uniform(-0.3, 0.3, (size, 3)),
                np.diag([5.5, 6.0, 6.5]) + 0.3 * rng.normal(size=(3, 3)) if periodic else np.zeros((3, 3)),
                np.full(3, periodic),
                energy=None if i == 3 else sum(SHIFTS[z] for z in numbers) + rng.normal(),
                forces=rng.normal(size=(size, 3)),
                virial=_symmetric(rng) if periodic else None,
                forces_weight=0.5 if i == 4 else 1.0,
                source_index=10 * i,
            )
        )
    return structures


def _symmetric(rng):
    matrix = rng.normal(size=(3, 3))
    return matrix + matrix.T


def run_config(**training):
    """The settings of a run with backend fabric, in double precision unless said otherwise."""
    defaults = {"precision": "float64", "lr": 0.005, "schedule": {"kind": "cosine", "warmup_steps": 2}}
    config = {
        "dataset": "d",
        "datasets": {"d": {"source": "d.xyz", "units": {"energy": "eV", "length": "angstrom"}}},
        "model": "m",
        "models": {"m": {"elements": ["H", "O"]}},
        "backend": "fabric",
        "training": defaults | training,
    }
    return load_config(config).run("d-m-fabric")
