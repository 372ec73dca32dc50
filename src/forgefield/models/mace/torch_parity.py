"""The check that an imported model computes what mace-torch computes."""

import importlib.metadata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.models.inference import predict
from forgefield.models.mace.torch_exchange import from_torch, to_torch
from forgefield.models.mace.torch_heads import heads_of
from forgefield.models.mace.torch_messages import in_words
from forgefield.models.mace.torch_pickle import read_pickle
from forgefield.models.mace.torch_reference import exact_forces, load_pickle, reference
from forgefield.models.potential import Potential, load_potential
from forgefield.models.samples import sample_structures

TOLERANCE, SMALL = 1e-10, 0.01


def checked_pickle(name: str, path: Path, head: str | None) -> tuple[Potential, dict[str, Any]]:
    """A trusted mace-torch ``.model`` file as a potential, and the report of its check."""
    record = read_pickle(path)
    try:
        potential = from_torch(record, head)
    except UserError as error:
        raise UserError(f"models.{name} ({path.name}): {error}") from None
    index = heads_of(record).index(potential.source["mace_torch"]["head"])
    module, note = _client(path, potential, index)
    return potential, check_parity(f"models.{name}: {path}", potential, module, index) | {"mace_torch_model": note}


def checked_directory(name: str, path: Path, head: str | None) -> tuple[Potential, dict[str, Any]]:
    """A forgefield directory as a potential, and the report of its check."""
    potential = load_potential(path)
    if potential.architecture != "mace":
        raise UserError(f"models.{name}: {path} is of architecture {potential.architecture!r}, expected 'mace'")
    held = potential.source.get("mace_torch", {}).get("head")
    if head not in (None, held):
        raise UserError(f"models.{name}.head is {head!r}, but {path} has a single head; remove the key")
    return potential, check_parity(f"models.{name}: {path}", potential, to_torch(potential, torch.float64))


def _client(path: Path, potential: Potential, head: int) -> tuple[torch.nn.Module, str]:
    """The model as mace-torch itself runs it; rebuilt where this mace-torch cannot run what an older one pickled."""
    try:
        module = load_pickle(path).double()
        reference(module, Structure(np.array(potential.elements[:1]), np.zeros((1, 3))), head)
    except Exception as error:
        rebuilt = to_torch(potential, torch.float64)
        return rebuilt, f"rebuilt from its arrays, for the pickled one does not run ({in_words(error)})"
    return module, "as pickled"


def check_parity(where: str, potential: Potential, module: torch.nn.Module, head: int = 0) -> dict[str, Any]:
    """Compare energies, forces and virials in float64 on sample structures.

    Differences are the largest absolute ones; relative ones are divided, in each structure, by the largest absolute
    reference value, or by 0.01 where that is smaller. Forces are derivatives of mace-torch's energy also where its own
    leave out a part (see :func:`~forgefield.models.mace.torch_reference.exact_forces`). Virials instead of stresses,
    for mace-torch divides by the volume of a cell of its own where some directions are open.

    Raises:
        UserError: a relative difference exceeds 1e-10, or a result is not a finite number.
    """
    structures = sample_structures(potential.elements)
    try:
        ours = list(predict(potential_without_shifts(potential), structures, virial=True))
    except UserError as error:
        raise UserError(f"{where}: on sample structures: {error}") from None
    exact_forces(module)
    pairs: dict[str, list[tuple[Any, Any]]] = {"energy": [], "forces": [], "virial": []}
    for structure, found in zip(structures, ours, strict=True):
        expected = reference(module, structure, head)
        pairs["energy"].append((found.energy, expected.energy))
        pairs["forces"].append((found.forces, expected.forces))
        if found.stress is not None:
            pairs["virial"].append((-found.stress * structure.volume, expected.virial))
    differences = {key: _largest([np.abs(np.subtract(a, b)).max() for a, b in of]) for key, of in pairs.items()}
    relative = {key: _largest([_relative(a, b) for a, b in of]) for key, of in pairs.items()}
    worst = max(relative, key=lambda key: np.nan_to_num(relative[key], nan=np.inf))
    if not relative[worst] <= TOLERANCE:
        raise UserError(
            f"{where}: the imported model differs from mace-torch's in its {worst} by {relative[worst]:.1e} relative, "
            f"more than {TOLERANCE:g}; please report this model, and choose another one"
        )
    return {
        "check": f"mace-torch {importlib.metadata.version('mace-torch')}, float64",
        "structures": len(structures),
        "atoms": sum(map(len, structures)),
        "units": {"energy": "eV", "forces": "eV/angstrom", "virial": "eV"},
        "largest_differences": differences,
        "relative_differences": relative,
        "relative_tolerance": TOLERANCE,
    }


def _largest(values: list[float]) -> float:
    """NaN if any value is, which Python's own maximum would pass over."""
    return float(np.max(values))


def _relative(found: Any, expected: Any) -> float:
    return float(np.abs(np.subtract(found, expected)).max() / np.maximum(np.abs(expected).max(), SMALL))


def potential_without_shifts(potential: Potential) -> Potential:
    """The same potential with energy shifts of zero, whose energies keep all their digits."""
    return replace(potential, energy_shifts=dict.fromkeys(potential.elements, 0.0))
