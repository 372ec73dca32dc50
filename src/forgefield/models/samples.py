"""Structures on which an imported model is compared with the program that it came from."""

from collections.abc import Iterator, Sequence

import numpy as np
from ase.data import covalent_radii

from forgefield.data.structures import Structure

ATOMS_PER_MOLECULE, MIN_MOLECULES, SPACING, JITTER = 12, 3, 2.2, 0.5
# of the sum of covalent radii, below which pairs repel by the ZBL potential
DIMER_LENGTH, DIMER_SPACING = 0.8, 20.0

BULK, SLAB, WIRE, FREE = (True, True, True), (True, False, True), (False, True, False), (False, False, False)

# atomic numbers, positions (n, 3) and cell (3, 3) in Å, periodic directions
Part = tuple[Sequence[int], np.ndarray, np.ndarray, Sequence[bool]]
NO_CELL = np.zeros((3, 3))


def sample_structures(elements: Sequence[int], seed: int = 0) -> list[Structure]:
    """What each part of a model needs to show itself.

    Random molecules that together hold every element, atoms near the points of a grid and never closer than 1.2 Å; a
    row of pairs as close as only a repulsion lets them be; an atom alone; a skewed crystal, the same as a slab and as a
    wire; a cell smaller than any cutoff, left-handed.
    """
    generator = np.random.default_rng(seed)
    parts = [*_molecules(elements, generator), _dimers(elements), (elements[-1:], np.zeros((1, 3)), NO_CELL, FREE)]
    crystal = _crystal(elements, generator)
    parts += [(*crystal, pbc) for pbc in (BULK, SLAB, WIRE)] + [_tiny_cell(elements)]
    return [
        Structure(np.array(numbers), positions, cell, np.array(pbc), source_index=i)
        for i, (numbers, positions, cell, pbc) in enumerate(parts)
    ]


def _molecules(elements: Sequence[int], generator: np.random.Generator) -> Iterator[Part]:
    for i in range(max(MIN_MOLECULES, -(-len(elements) // ATOMS_PER_MOLECULE))):
        points = generator.permutation(_grid(3, 3, 3))[:ATOMS_PER_MOLECULE]
        first = np.roll(elements, -i * ATOMS_PER_MOLECULE)[:ATOMS_PER_MOLECULE]
        numbers = np.concatenate([first, generator.choice(elements, ATOMS_PER_MOLECULE - len(first))])
        yield numbers, _jittered(points, generator) * SPACING, NO_CELL, FREE


def _dimers(elements: Sequence[int]) -> Part:
    pairs = np.stack([elements, np.roll(elements, 1)], axis=1)
    positions = np.zeros((*pairs.shape, 3))
    positions[..., 0] = (DIMER_SPACING * np.arange(len(pairs)))[:, None]
    positions[:, 1, 1] = DIMER_LENGTH * covalent_radii[pairs].sum(axis=1)
    return pairs.ravel(), positions.reshape(-1, 3), NO_CELL, FREE


def _crystal(elements: Sequence[int], generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shape = np.array([3, 2, 2])
    skew = np.array([[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [-0.1, 0.3, 1.0]]) * SPACING
    positions = _jittered(_grid(*shape), generator) @ skew
    return generator.choice(elements, len(positions)), positions, shape[:, None] * skew


def _tiny_cell(elements: Sequence[int]) -> Part:
    cell = np.array([[2.3, 0.2, 0.0], [0.1, -0.3, 3.1], [0.3, 2.5, 0.2]])
    return [elements[0], elements[-1]], np.array([[0.0, 0.0, 0.0], [1.2, 1.1, 1.4]]), cell, BULK


def _grid(*shape: int) -> np.ndarray:
    return np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(-1, 3).astype(float)


def _jittered(points: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return points + generator.uniform(-JITTER, JITTER, points.shape) / SPACING
