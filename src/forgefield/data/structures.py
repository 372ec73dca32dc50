"""One labelled structure, the unit in which the data stage, the models and the trainers exchange data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Structure:
    """Atoms with whatever reference labels exist for them. Lengths and energies are in the units its reader states.

    Attributes:
        numbers: (n,) atomic numbers.
        positions: (n, 3).
        cell: (3, 3) cell vectors as rows; zeros where there is no cell.
        pbc: (3,) periodic along each cell vector.
        energy: total energy, or None where the label is absent.
        forces: (n, 3), or None.
        virial: (3, 3), -stress x volume, or None.
        energy_weight, forces_weight, virial_weight: the user's weights of present labels.
        source_index: the frame's number in its source.
        extra: further values by name, numbers or arrays, in units of their own.
    """

    numbers: np.ndarray
    positions: np.ndarray
    cell: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    pbc: np.ndarray = field(default_factory=lambda: np.zeros(3, dtype=bool))
    energy: float | None = None
    forces: np.ndarray | None = None
    virial: np.ndarray | None = None
    energy_weight: float = 1.0
    forces_weight: float = 1.0
    virial_weight: float = 1.0
    source_index: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def volume(self) -> float:
        return float(abs(np.linalg.det(self.cell)))
