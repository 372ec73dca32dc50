"""Writes what both sides of one comparison read: a model scaled to the system, and labels that make a fair loss."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import models
import numpy as np
import torch
from cases import LABELS, MODULE, POTENTIAL, TERMS
from engines.torch_engine import Batch, WeightedEnergyForcesLoss, atomic_data
from systems import SEED, SYSTEMS

from forgefield.data.neighbors import neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.models.mace.torch_exchange import to_torch
from forgefield.models.mace.torch_reference import quiet_mace
from forgefield.models.potential import Potential, save_potential

# residuals of the labels: eV/atom and eV/Å; those of total energies of thousands of eV stay far above float32 rounding
ENERGY_NOISE, FORCES_NOISE = (0.05, 0.15), 0.3


def write_case(directory: Path, model: str, system_name: str) -> None:
    """Draw the model, compute labels with mace-torch in float64, and write both.

    The model is scaled to forces of 1 eV/Å (root mean square). Labels are its own predictions plus noise; the weight of
    the energy term makes its gradient with respect to the parameters as long as that of the force term.
    """
    system = SYSTEMS[system_name]()
    elements = tuple(sorted({int(z) for s in system.pool for z in s.numbers}))
    batch = [system.pool[row] for row in system.rows]
    n_pairs = sum(len(neighbor_pairs(s, models.R_MAX).receiver) for s in batch)
    potential = models.potential(model, elements, 2 * n_pairs / sum(map(len, batch)))
    generator = np.random.default_rng(SEED)
    signs = generator.choice((-1.0, 1.0), len(batch))
    energy_noise = len(batch[0]) * signs * generator.uniform(*ENERGY_NOISE, len(batch))
    forces_noise = FORCES_NOISE * generator.standard_normal((sum(map(len, batch)), 3))
    module = to_torch(potential, torch.float64)
    # the ratio of the terms' gradients does not depend on the scale, which multiplies both
    energies, forces, gradients = _evaluate(module, potential, batch, energy_noise, forces_noise)
    scale = float(1 / np.sqrt((forces**2).mean()))
    directory.mkdir(parents=True)
    save_potential(replace(potential, config={**potential.config, "scale": scale}), directory / POTENTIAL)
    module.scale_shift.scale.fill_(scale)
    with quiet_mace():
        torch.save(module, directory / MODULE)
    labels = {"energies": scale * energies + energy_noise, "forces": scale * forces + forces_noise}
    np.savez(directory / LABELS, **labels)
    gammas = {"U": gradients["F"] / gradients["U"], "F": 1.0}
    (directory / TERMS).write_text(json.dumps({"system": system_name, "gammas": gammas}))


def _evaluate(
    module: torch.nn.Module,
    potential: Potential,
    batch: Sequence[Structure],
    energy_noise: np.ndarray,
    forces_noise: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Energies (B,), forces (N, 3), and the lengths of the gradients of both loss terms at the given residuals."""
    torch.set_default_dtype(torch.float64)
    graphs = Batch.from_data_list([atomic_data(potential, s) for s in batch])
    output = module(graphs.to_dict(), training=True)
    energies, forces = output["interaction_energy"].detach(), output["forces"].detach()
    graphs.energy, graphs.forces = energies + torch.tensor(energy_noise), forces + torch.tensor(forces_noise)
    parameters = [p for p in module.parameters() if p.numel()]
    lengths = {}
    for key, weights in (("U", (1.0, 0.0)), ("F", (0.0, 1.0))):
        loss = WeightedEnergyForcesLoss(*weights)(pred=output, ref=graphs)
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True, materialize_grads=True)
        lengths[key] = float(torch.sqrt(sum((g**2).sum() for g in gradients)))
    return energies.numpy(), forces.numpy(), lengths
