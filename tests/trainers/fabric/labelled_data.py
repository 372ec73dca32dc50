"""Labelled structures of uneven sizes and the settings of a run, for both engines."""

import numpy as np

from forgefield.config import load_config
from forgefield.data.store import StoreWriter
from forgefield.data.structures import Structure
from forgefield.units import Units

SHIFTS = {1: -13.6, 8: -430.0}
# of 20 structures for 13 epochs: 52 steps; with fixed batches the last of each epoch has 2, for 2 or 3 processes
SETTINGS = {"batch": 6, "epochs": 13, "eval_batch": 4, "checkpoint_every": 1}


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


def with_giant(structures):
    """Structures of which the last has more atoms than many others together."""
    rng = np.random.default_rng(9)
    grid = np.stack(np.meshgrid(*[np.arange(4)] * 3), axis=-1).reshape(-1, 3)
    numbers = rng.choice([1, 8], len(grid))
    positions = 1.5 * grid + rng.uniform(-0.2, 0.2, grid.shape)
    giant = Structure(numbers, positions, energy=-2e4, forces=rng.normal(size=grid.shape), source_index=1000)
    return [*structures[:-1], giant]


def _symmetric(rng):
    matrix = rng.normal(size=(3, 3))
    return matrix + matrix.T


def write_stores(directory, **splits):
    """Structures as the stores of a converted dataset."""
    directory.mkdir(parents=True)
    for split, part in splits.items():
        attributes = {"split": split, "source": "made up", "source_sha256": "0"}
        sizes = {"n_structures": len(part), "max_atoms": max(map(len, part))}
        kind = {"units": Units(), "dtype": "float64", "has_virial": True}
        with StoreWriter(directory / f"{split}.h5", **sizes, **kind, attributes=attributes) as writer:
            writer.append(part)


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
