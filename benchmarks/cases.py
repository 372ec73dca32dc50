"""What both sides of one comparison read."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from systems import SYSTEMS, System, labelled

from forgefield.data.structures import Structure
from forgefield.models.potential import Potential, load_potential

POTENTIAL, MODULE, LABELS, TERMS = "potential", "module.pt", "labels.npz", "case.json"
LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Case:
    """One model on one batch.

    Attributes:
        potential: the model; mace-torch's is the file ``module``.
        system: where the structures come from.
        pool: the system's structures with labels.
        gammas: weight of the energy and force terms of the loss, ``U`` and ``F``.
    """

    potential: Potential
    module: Path
    system: System
    pool: tuple[Structure, ...]
    gammas: dict[str, float]

    @cached_property
    def batch(self) -> list[Structure]:
        """The structures that are timed."""
        return [self.pool[row] for row in self.system.rows]


def read_case(directory: Path) -> Case:
    """Read what :func:`preparation.write_case` wrote."""
    content = json.loads((directory / TERMS).read_text())
    system = SYSTEMS[content["system"]]()
    with np.load(directory / LABELS) as labels:
        pool = labelled(system, labels["energies"], labels["forces"])
    return Case(load_potential(directory / POTENTIAL), directory / MODULE, system, pool, content["gammas"])
