"""What an engine does for inference: computes batches of structures."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from forgefield.data.neighbors import NeighborPairs
from forgefield.data.structures import Structure
from forgefield.models.potential import Potential

Wanted = Literal["energy", "forces", "virial"]
"""What is computed: ``forces`` means the energy too, and ``virial`` all three."""


class Computed(NamedTuple):
    """Energies (B,) in eV, forces (N, 3) in eV/Å and virials (B, 3, 3) in eV in float64; None if not wanted."""

    energies: np.ndarray
    forces: np.ndarray | None
    virials: np.ndarray | None


class Group(NamedTuple):
    """Structures that are computed together, with their neighbor pairs."""

    structures: list[Structure]
    pairs: list[NeighborPairs]


class BatchFunction(Protocol):
    """Computes batches on one device or on several at once; keeps what it compiles.

    Attributes:
        devices: how many batches it computes at once.
    """

    devices: int

    def pack(self, groups: Sequence[Group]) -> Any:
        """Up to ``devices`` batches as arrays, which every function alike can compute."""
        ...

    def compute(self, packed: Any) -> list[Computed]:
        """Each batch's energies, without energy shifts, forces and virials."""
        ...

    def forget_sizes(self) -> None:
        """Round as if no batch had been computed before."""
        ...

    def alike(self, potential: Potential) -> "BatchFunction":
        """The same for a potential that differs in parameters alone."""
        ...
