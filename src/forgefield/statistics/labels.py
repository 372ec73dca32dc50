"""Reference labels that count: NaN stands for a label that is absent or has weight 0."""

import numpy as np

from forgefield.data.structures import Structure


def counted_energy(structure: Structure) -> float:
    """Total energy, eV."""
    return structure.energy if structure.energy is not None and structure.energy_weight > 0 else np.nan


def counted_forces(structure: Structure) -> np.ndarray:
    """(n, 3) eV/Å."""
    if structure.forces is None or structure.forces_weight == 0:
        return np.full((len(structure), 3), np.nan)
    return structure.forces


def counted_stress(structure: Structure) -> np.ndarray:
    """(3, 3) eV/Å^3: minus the virial over the volume."""
    if structure.virial is None or structure.virial_weight == 0 or structure.volume == 0:
        return np.full((3, 3), np.nan)
    return -structure.virial / structure.volume
