"""The check that an imported model computes what the program that it came from computes."""

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.models.inference import Engine, predict
from forgefield.models.potential import Potential
from forgefield.models.samples import sample_structures

TOLERANCE, SMALL = 1e-10, 0.01


class Reference(NamedTuple):
    """Energy in eV without energy shifts, forces (n, 3) in eV/Å, virial (3, 3) in eV or None."""

    energy: float
    forces: np.ndarray
    virial: np.ndarray | None


def compare(
    where: str,
    potential: Potential,
    program: str,
    reference: Callable[[Structure], Reference | None],
    engine: Engine = "torch",
) -> dict[str, Any]:
    """Compare energies, forces and virials in float64 on sample structures.

    Differences are the largest absolute ones; relative ones are divided, in each structure, by the largest absolute
    reference value, or by 0.01 where that is smaller. Virials instead of stresses, for mace-torch divides by the volume
    of a cell of its own where some directions are open, and FlashCart by a negative one where it is left-handed.

    Args:
        where: what messages begin with.
        potential: the imported model.
        program: the distribution that gives the reference.
        reference: its results for a structure; None where it cannot compute it.
        engine: which computes the imported model.

    Raises:
        UserError: a relative difference exceeds 1e-10, or a result is not a finite number.
    """
    structures = sample_structures(potential.elements)
    try:
        ours = list(predict(_without_shifts(potential), structures, wanted="virial", engine=engine))
    except UserError as error:
        raise UserError(f"{where}: on sample structures: {error}") from None
    theirs = [reference(structure) for structure in structures]
    pairs: dict[str, list[tuple[Any, Any]]] = {"energy": [], "forces": [], "virial": []}
    for structure, found, expected in zip(structures, ours, theirs, strict=True):
        if expected is None:
            continue
        pairs["energy"].append((found.energy, expected.energy))
        pairs["forces"].append((found.forces, expected.forces))
        if found.stress is not None and expected.virial is not None:
            pairs["virial"].append((-found.stress * structure.volume, expected.virial))
    differences = {key: _largest([np.abs(np.subtract(a, b)).max() for a, b in of]) for key, of in pairs.items()}
    relative = {key: _largest([_relative(a, b) for a, b in of]) for key, of in pairs.items()}
    worst = max(relative, key=lambda key: np.nan_to_num(relative[key], nan=np.inf))
    if not relative[worst] <= TOLERANCE:
        raise UserError(
            f"{where}: the imported model differs from {program}'s in its {worst} by {relative[worst]:.1e} relative, "
            f"more than {TOLERANCE:g}; please report this model, and choose another one"
        )
    return {
        "check": f"{program} {version(program)}, float64",
        "engine": engine,
        "structures": len(pairs["energy"]),
        "atoms": sum(len(forces) for forces, _ in pairs["forces"]),
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


def _without_shifts(potential: Potential) -> Potential:
    """The same potential with energy shifts of zero, whose energies keep all their digits."""
    return replace(potential, energy_shifts=dict.fromkeys(potential.elements, 0.0))
