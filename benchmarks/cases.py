"""What both sides of one comparison read: a model scaled to the system, and labels that make a fair loss."""

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import models
import numpy as np
from systems import SEED, SYSTEMS, System, labelled

from forgefield.data.neighbors import neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.models.potential import Potential, load_potential, save_potential

# residuals of the labels: eV/atom and eV/Å
ENERGY_NOISE, FORCES_NOISE = 0.01, 0.3
LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Case:
    """One model on one batch.

    Attributes:
        potential: the model.
        system: where the structures come from.
        pool: the system's structures with labels.
        gammas: weight of the energy and force terms of the loss, ``U`` and ``F``.
    """

    potential: Potential
    system: System
    pool: tuple[Structure, ...]
    gammas: dict[str, float]

    @cached_property
    def batch(self) -> list[Structure]:
        """The structures that are timed."""
        return [self.pool[row] for row in self.system.rows]


def write_case(directory: Path, model: str, system_name: str) -> None:
    """Draw the model, compute labels with mace-torch in float64, and write both.

    The model is scaled to forces of 1 eV/Å (root mean square). Labels are its own predictions plus noise; the weight of
    the energy term makes its gradient with respect to the parameters as long as that of the force term.
    """
    from engines.torch_engine import evaluate_once

    system = SYSTEMS[system_name]()
    elements = tuple(sorted({int(z) for s in system.pool for z in s.numbers}))
    batch = [system.pool[row] for row in system.rows]
    n_pairs = sum(len(neighbor_pairs(s, models.R_MAX).receiver) for s in batch)
    potential = models.potential(model, elements, 2 * n_pairs / sum(map(len, batch)))
    generator = np.random.default_rng(SEED)
    energy_noise = ENERGY_NOISE * len(batch[0]) * generator.standard_normal(len(batch))
    forces_noise = FORCES_NOISE * generator.standard_normal((sum(map(len, batch)), 3))
    # the ratio of the terms' gradients does not depend on the scale, which multiplies both
    energies, forces, gradients = evaluate_once(potential, batch, energy_noise, forces_noise)
    scale = float(1 / np.sqrt((forces**2).mean()))
    directory.mkdir(parents=True)
    save_potential(replace(potential, config={**potential.config, "scale": scale}), directory / "potential")
    labels = {"energies": scale * energies + energy_noise, "forces": scale * forces + forces_noise}
    np.savez(directory / "labels.npz", **labels)
    gammas = {"U": gradients["F"] / gradients["U"], "F": 1.0}
    (directory / "case.json").write_text(json.dumps({"system": system_name, "gammas": gammas}))


def read_case(directory: Path) -> Case:
    """Read what :func:`write_case` wrote."""
    content = json.loads((directory / "case.json").read_text())
    system = SYSTEMS[content["system"]]()
    with np.load(directory / "labels.npz") as labels:
        pool = labelled(system, labels["energies"], labels["forces"])
    return Case(load_potential(directory / "potential"), system, pool, content["gammas"])
