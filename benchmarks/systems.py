"""The batches that are timed, built the same way in every process."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import ase.io
import numpy as np
from ase.build import bulk, molecule
from ase.data import atomic_numbers

from forgefield.data.plans import epoch_order
from forgefield.data.structures import Structure

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
SEED, JITTER = 0, 0.05


@dataclass(frozen=True)
class System:
    """Structures of one kind, of which the first shuffled batch is timed.

    Attributes:
        title: what the tables call it.
        origin: where the geometries come from.
        pool: all structures (Å), of one size; the shapes of packed batches are planned on all of them.
        batch: structures per batch.
    """

    title: str
    origin: str
    pool: tuple[Structure, ...]
    batch: int

    @property
    def rows(self) -> np.ndarray:
        """The rows of the batch in the pool: the first batch of a training with seed 0."""
        return epoch_order(len(self.pool), SEED, 0)[: self.batch]


def bpa() -> System:
    """Frames of 3BPA, a flexible drug-like molecule."""
    path = SHARED / "molecules" / "3bpa_train_300K.xyz"
    pool, origin = _read_or_stand_in(path, "frames at 300 K", "C12H12N2O", (11.0, 5.0, 3.0), 64)
    return System("8 x 3BPA (27 atoms)", origin, pool, 8)


def catcher() -> System:
    """The buckyball catcher of MD22."""
    path = SHARED / "md22" / "buckyball_catcher_148atoms.xyz"
    pool, origin = _read_or_stand_in(path, "one geometry", "C120H28", (12.0, 11.0, 10.0), 1)
    return System("buckyball catcher (148 atoms)", origin, pool, 1)


def oxide() -> System:
    """A periodic rock-salt cell whose atoms are displaced at random."""
    crystal = bulk("MgO", "rocksalt", a=4.21, cubic=True).repeat(2)
    cell, positions = np.array(crystal.cell), _jittered(crystal.positions, 2 * JITTER, np.random.default_rng(SEED))
    structure = Structure(np.array(crystal.numbers), positions, cell, np.ones(3, dtype=bool))
    return System("periodic MgO (64 atoms)", "rock salt, atoms displaced at random", (structure,), 1)


def ethanol() -> System:
    """A molecule small enough to try the benchmark in seconds; not part of the tables."""
    atoms, generator = molecule("CH3CH2OH"), np.random.default_rng(SEED)
    pool = tuple(Structure(atoms.numbers, _jittered(atoms.positions, JITTER, generator)) for _ in range(4))
    return System("2 x ethanol (9 atoms)", "one geometry, atoms displaced at random", pool, 2)


SYSTEMS: dict[str, Callable[[], System]] = {"3bpa": bpa, "catcher": catcher, "mgo": oxide, "ethanol": ethanol}


def labelled(system: System, energies: np.ndarray, forces: np.ndarray) -> tuple[Structure, ...]:
    """The pool with labels (eV, eV/Å): of its batch as given, of all other structures zero."""
    pool = [replace(s, energy=0.0, forces=np.zeros((len(s), 3))) for s in system.pool]
    for row, energy, force in zip(system.rows, energies, forces.reshape(system.batch, -1, 3), strict=True):
        pool[row] = replace(pool[row], energy=float(energy), forces=force)
    return tuple(pool)


def _read_or_stand_in(
    path: Path, content: str, formula: str, box: tuple[float, float, float], count: int
) -> tuple[tuple[Structure, ...], str]:
    """Structures, and where they come from: a file where it is here, otherwise :func:`_stand_ins`."""
    if path.is_file():
        return _read(path), content
    return _stand_ins(formula, box, count), f"a random stand-in of the same size and density: {path.name} is not here"


def _read(path: Path) -> tuple[Structure, ...]:
    """Molecules without their box, centred, so that float32 keeps the digits of the distances."""
    frames = ase.io.read(path, ":")
    return tuple(
        Structure(a.numbers, a.positions - a.positions.mean(axis=0), source_index=i) for i, a in enumerate(frames)
    )


def _stand_ins(formula: str, box: tuple[float, float, float], count: int) -> tuple[Structure, ...]:
    """Atoms at random in a box (Å), no two closer than 1.05 Å, in ``count`` slightly displaced copies."""
    numbers = np.array([atomic_numbers[s] for s in ase.Atoms(formula).get_chemical_symbols()])
    generator = np.random.default_rng(SEED)
    points = np.zeros((0, 3))
    while len(points) < len(numbers):
        new = generator.uniform(0, box)
        if (np.linalg.norm(points - new, axis=1) > 1.05).all():
            points = np.vstack([points, new])
    return tuple(Structure(numbers, _jittered(points, JITTER, generator)) for _ in range(count))


def _jittered(positions: np.ndarray, width: float, generator: np.random.Generator) -> np.ndarray:
    return positions + generator.normal(0.0, width, positions.shape)
