r"""The force-matching loss, defined per structure so that neither packing nor sharding changes it.

With penalty :math:`\rho(x) = x^2` (``mse``) or Huber's (``huber``: :math:`x^2/2` up to ``delta``, then
:math:`\delta(|x| - \delta/2)`), structure *s* with *n* atoms contributes

.. math::
    L_s = \gamma_U w_U \rho(\Delta U / n)
        + \gamma_F w_F \frac{1}{3n} \sum_{ia} \rho(\Delta F_{ia})
        + \gamma_V w_V \frac{1}{9} \sum_{ab} \rho(\Delta V_{ab} / n)

in eV and Å, where each *w* is the weight of the label (0 where it is absent). An additional target *t* of *k*
components adds

.. math::
    \gamma_t w_t \frac{1}{k} \sum_c \rho(\Delta t_c)

in the units of its own label, which are then also those of ``delta``; it is not divided by *n*. The loss of a training
step is :math:`\sum_s L_s / B` with the batch size *B*, also for a short last batch; that of an evaluation is the mean
over all structures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from forgefield.data.batching import Batch, Graph, Labels, Target
from forgefield.errors import UserError


class Predicted(NamedTuple):
    """What a model predicts for a packed batch: energy (B,) in eV, forces (N, 3), virial (B, 3, 3) or None.

    ``targets`` are the additional ones (B, ...) by name.
    """

    energy: Array
    forces: Array
    virial: Array | None
    targets: Mapping[str, Array] = {}


@dataclass(frozen=True)
class Loss:
    """Weights and penalty of the loss.

    Attributes:
        gammas: weight of each term by its key: ``U`` (energy per atom), ``F`` (forces), ``virial`` (per atom), or an
            additional target's name.
        kind: ``mse`` or ``huber``.
        huber_delta: where Huber's penalty turns linear, in eV/atom and eV/Å.
    """

    gammas: Mapping[str, float] = field(default_factory=lambda: {"U": 1.0, "F": 1.0})
    kind: Literal["mse", "huber"] = "mse"
    huber_delta: float = 0.01

    def per_structure(self, predicted: Predicted, batch: Batch) -> Array:
        """(B,) contribution of each structure; 0 for padding."""
        graph, labels, targets, _ = batch
        energy, forces, virial = residuals(predicted, graph, labels)
        n = jnp.maximum(graph.n_atoms, 1).astype(energy.dtype)
        total = self.gammas.get("U", 0.0) * labels.energy_weight * self._penalty(energy)
        per_atom = self._penalty(forces).sum(axis=1)
        total += self.gammas.get("F", 0.0) * labels.forces_weight * per_structure_sum(per_atom, graph) / (3 * n)
        if virial is not None:
            penalty = self._penalty(virial).mean(axis=(1, 2))
            total += self.gammas.get("virial", 0.0) * labels.virial_weight * penalty
        for name, target in targets.items():
            penalty = self._penalty(target_errors(name, predicted, target)).mean(axis=1)
            total += self.gammas[name] * target.weight * penalty
        return total

    def _penalty(self, x: Array) -> Array:
        if self.kind == "mse":
            return x**2
        size, delta = jnp.abs(x), self.huber_delta
        # the clipped branch keeps the gradient of the other finite
        inner = jnp.minimum(size, delta)
        return 0.5 * inner**2 + delta * (size - inner)


def residuals(predicted: Predicted, graph: Graph, labels: Labels) -> tuple[Array, Array, Array | None]:
    """Energy (B,) and virial (B, 3, 3) errors per atom, force errors (N, 3); 0 for padding atoms."""
    n = jnp.maximum(graph.n_atoms, 1).astype(predicted.energy.dtype)
    energy = (predicted.energy - labels.energy) / n
    forces = (predicted.forces - labels.forces) * graph.atom_mask[:, None]
    virial = None if predicted.virial is None else (predicted.virial - labels.virial) / n[:, None, None]
    return energy, forces, virial


def target_errors(name: str, predicted: Predicted, target: Target) -> Array:
    """(B, k) errors of an additional target's components; 0 where it does not count.

    Raises:
        UserError: what the function gives has not the shape of the label.
    """
    found, expected = predicted.targets[name].shape, target.value.shape
    if found != expected:
        raise UserError(
            f"additional_targets: {name} is {found[1:]} for each structure as the function gives it, and "
            f"{expected[1:]} in the data; make them alike"
        )
    errors = (predicted.targets[name] - target.value).reshape(len(target.weight), -1)
    return jnp.where(target.weight[:, None] > 0, errors, 0.0)


def per_structure_sum(per_atom: Array, graph: Graph) -> Array:
    """(B,) sums of a per-atom quantity (N,) that is 0 for padding atoms."""
    return jax.ops.segment_sum(per_atom, graph.atom_structure, len(graph.n_atoms), indices_are_sorted=True)


def error_sums(loss: Loss, predicted: Predicted, batch: Batch) -> dict[str, Array]:
    """Sums over a batch, for :func:`forgefield.trainers.metrics.metrics`: nothing is lost when they are added up."""
    graph, labels, targets, _ = batch
    energy, forces, virial = residuals(predicted, graph, labels)
    has_energy = (labels.energy_weight > 0).astype(energy.dtype)
    has_forces = (labels.forces_weight > 0).astype(energy.dtype)
    sums = {"loss": loss.per_structure(predicted, batch).sum()}
    sums |= _sums("energy", energy * has_energy, has_energy.sum())
    components = 3 * (has_forces * graph.n_atoms).sum()
    sums |= _sums("forces", forces * has_forces[graph.atom_structure][:, None], components)
    if virial is not None:
        has_virial = (labels.virial_weight > 0).astype(energy.dtype)
        sums |= _sums("virial", virial * has_virial[:, None, None], 9 * has_virial.sum())
    for name, target in targets.items():
        errors, there = target_errors(name, predicted, target), (target.weight > 0).astype(energy.dtype)
        sums |= _sums(name, errors, errors.shape[1] * there.sum())
    return sums


def _sums(name: str, errors: Array, count: Array) -> dict[str, Array]:
    return {f"{name}_abs": jnp.abs(errors).sum(), f"{name}_sq": (errors**2).sum(), f"{name}_count": count}
