"""The loss of :mod:`forgefield.trainers.losses` on tensors, defined there; the same numbers to rounding."""

import torch
from torch import Tensor

from forgefield.config.training import Loss
from forgefield.data.batching import Labels
from forgefield.models.pytorch.graphs import TorchGraph
from forgefield.models.pytorch.interface import Predicted


def per_structure(loss: Loss, predicted: Predicted, graph: TorchGraph, labels: Labels) -> Tensor:
    """(B,) contribution of each structure."""
    energy, forces, virial = residuals(predicted, graph, labels)
    total = loss.energy * labels.energy_weight * _penalty(loss, energy)
    per_atom = _penalty(loss, forces).sum(dim=1)
    sums = torch.zeros_like(energy).index_add(0, graph.atom_structure, per_atom)
    total = total + loss.forces * labels.forces_weight * sums / (3 * graph.n_atoms)
    if virial is not None:
        total = total + loss.virial * labels.virial_weight * _penalty(loss, virial).mean(dim=(1, 2))
    return total


def residuals(predicted: Predicted, graph: TorchGraph, labels: Labels) -> tuple[Tensor, Tensor, Tensor | None]:
    """Energy (B,) and virial (B, 3, 3) errors per atom, force errors (N, 3)."""
    n = graph.n_atoms
    virial = None if predicted.virial is None else (predicted.virial - labels.virial) / n[:, None, None]
    return (predicted.energy - labels.energy) / n, predicted.forces - labels.forces, virial


@torch.no_grad()
def error_sums(loss: Loss, predicted: Predicted, graph: TorchGraph, labels: Labels) -> dict[str, float]:
    """Sums over a batch from which :func:`forgefield.trainers.metrics.metrics` makes means."""
    energy, forces, virial = residuals(predicted, graph, labels)
    sums = {"loss": float(per_structure(loss, predicted, graph, labels).sum())}
    sums |= _sums("energy", energy[labels.energy_weight > 0])
    sums |= _sums("forces", forces[(labels.forces_weight > 0)[graph.atom_structure]])
    if virial is not None:
        sums |= _sums("virial", virial[labels.virial_weight > 0])
    return sums


def _penalty(loss: Loss, x: Tensor) -> Tensor:
    if loss.kind == "mse":
        return x**2
    return torch.nn.functional.huber_loss(x, torch.zeros_like(x), reduction="none", delta=loss.huber_delta)


def _sums(name: str, errors: Tensor) -> dict[str, float]:
    return {
        f"{name}_abs": float(errors.abs().sum()),
        f"{name}_sq": float((errors**2).sum()),
        f"{name}_count": float(errors.numel()),
    }
