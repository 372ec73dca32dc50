"""The check that an imported model computes what mace-torch computes."""

import importlib.metadata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.models.inference import predict
from forgefield.models.mace.torch_exchange import from_torch, to_torch
from forgefield.models.mace.torch_reference import load_pickle, reference
from forgefield.models.potential import Potential, load_potential

TOLERANCE = 1e-9
ATOMS_PER_MOLECULE, MIN_MOLECULES, SPACING, JITTER = 12, 3, 2.2, 0.5


def checked_pickle(name: str, path: Path) -> tuple[Potential, dict[str, Any]]:
    """A trusted mace-torch ``.model`` file as a potential, and the report of its check."""
    module = load_pickle(path)
    potential = from_torch(module)
    return potential, check_parity(f"models.{name}: {path}", potential, module.double())


def checked_directory(name: str, path: Path) -> tuple[Potential, dict[str, Any]]:
    """A forgefield directory as a potential, and the report of its check."""
    potential = load_potential(path)
    if potential.architecture != "mace":
        raise UserError(f"models.{name}: {path} is of architecture {potential.architecture!r}, expected 'mace'")
    return potential, check_parity(f"models.{name}: {path}", potential, to_torch(potential, torch.float64))


def check_parity(where: str, potential: Potential, module: torch.nn.Module) -> dict[str, Any]:
    """Compare energies, forces and stresses in float64 on sample structures.

    Differences are the largest absolute ones; relative ones are divided by the largest absolute reference value.

    Raises:
        UserError: a relative difference exceeds 1e-9.
    """
    structures = sample_structures(potential.elements)
    shifted = potential_without_shifts(potential)
    ours = list(predict(shifted, structures, virial=True))
    theirs = [reference(module, structure) for structure in structures]
    volume = structures[-1].volume
    pairs = {
        "energy": ([p.energy for p in ours], [r.energy for r in theirs]),
        "forces": (np.concatenate([p.forces for p in ours]), np.concatenate([r.forces for r in theirs])),
        "stress": (ours[-1].stress, -theirs[-1].virial / volume),
    }
    differences = {key: float(np.abs(np.subtract(*pair)).max()) for key, pair in pairs.items()}
    relative = {key: differences[key] / float(np.abs(pair[1]).max()) for key, pair in pairs.items()}
    worst = max(relative, key=relative.get)
    if not relative[worst] <= TOLERANCE:
        raise UserError(
            f"{where}: the imported model's {worst} differs from mace-torch's by {relative[worst]:.1e} relative, "
            f"more than {TOLERANCE:g}; please report this model, and choose another one"
        )
    return {
        "check": f"mace-torch {importlib.metadata.version('mace-torch')}, float64",
        "structures": len(structures),
        "atoms": sum(map(len, structures)),
        "units": {"energy": "eV", "forces": "eV/angstrom", "stress": "eV/angstrom^3"},
        "largest_differences": differences,
        "relative_differences": relative,
        "relative_tolerance": TOLERANCE,
    }


def potential_without_shifts(potential: Potential) -> Potential:
    """The same potential with energy shifts of zero, whose energies keep all their digits."""
    return replace(potential, energy_shifts=dict.fromkeys(potential.elements, 0.0))


def sample_structures(elements: Sequence[int], seed: int = 0) -> list[Structure]:
    """Random molecules that together hold every element, then one skewed periodic crystal.

    Atoms sit near the points of a grid, at random, never closer than 1.2 Å.
    """
    generator = np.random.default_rng(seed)
    n_molecules = max(MIN_MOLECULES, -(-len(elements) // ATOMS_PER_MOLECULE))
    molecules = []
    for i in range(n_molecules):
        points = generator.permutation(_grid(3, 3, 3))[:ATOMS_PER_MOLECULE]
        first = np.roll(elements, -i * ATOMS_PER_MOLECULE)[:ATOMS_PER_MOLECULE]
        numbers = np.concatenate([first, generator.choice(elements, ATOMS_PER_MOLECULE - len(first))])
        molecules.append(Structure(numbers, _jittered(points, generator) * SPACING, source_index=i))
    shape = np.array([3, 2, 2])
    skew = np.array([[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [-0.1, 0.3, 1.0]]) * SPACING
    positions = _jittered(_grid(*shape), generator) @ skew
    crystal = Structure(
        generator.choice(elements, len(positions)),
        positions,
        shape[:, None] * skew,
        np.ones(3, dtype=bool),
        source_index=n_molecules,
    )
    return [*molecules, crystal]


def _grid(*shape: int) -> np.ndarray:
    return np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(-1, 3).astype(float)


def _jittered(points: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return points + generator.uniform(-JITTER, JITTER, points.shape) / SPACING
