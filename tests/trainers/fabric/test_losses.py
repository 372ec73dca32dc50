import jax
import numpy as np
import pytest
import torch
from labelled_data import SHIFTS, labelled_structures

from forgefield.config.training import Loss as LossConfig
from forgefield.data.batching import needed_capacity
from forgefield.data.packing import PackedNeighbors
from forgefield.models.pytorch.interface import Predicted
from forgefield.trainers import losses as jax_losses
from forgefield.trainers.fabric.graphs import DirectedNeighbors
from forgefield.trainers.fabric.losses import error_sums, per_structure


def both_batches(structures):
    """The same structures as PyTorch and as JAX read them."""
    batches = []
    for neighbors in (DirectedNeighbors, PackedNeighbors):
        made = neighbors(3.0, tuple(SHIFTS), SHIFTS)
        pairs = [made.pairs(s) for s in structures]
        batches.append(made.pack(structures, pairs, needed_capacity(structures, pairs), np.dtype(np.float64)))
    return batches


@pytest.mark.parametrize("kind", ["mse", "huber"])
def test_loss_and_error_sums_are_those_of_jax(kind):
    structures = labelled_structures(6)
    batch, padded = both_batches(structures)
    rng = np.random.default_rng(0)
    n = len(batch.graph.positions)
    energy, forces, virial = rng.normal(size=6), rng.normal(size=(n, 3)), rng.normal(size=(6, 3, 3))
    padding = np.full((len(padded.graph.positions) - n, 3), 99.0)
    ours = Predicted(*map(torch.tensor, (energy, forces, virial)))
    theirs = jax_losses.Predicted(energy, np.concatenate([forces, padding]), virial)

    config = LossConfig(kind=kind, energy=2.0, forces=3.0, virial=0.5, huber_delta=0.7)
    loss = jax_losses.Loss({"U": 2.0, "F": 3.0, "virial": 0.5}, kind, 0.7)
    expected = loss.per_structure(theirs, padded)
    np.testing.assert_allclose(per_structure(config, ours, *batch), expected, rtol=1e-13)
    expected = jax.tree.map(float, jax_losses.error_sums(loss, theirs, padded))
    assert error_sums(config, ours, *batch) == pytest.approx(expected, rel=1e-13)


def test_without_virials_their_term_is_left_out():
    batch, _ = both_batches(labelled_structures(6))
    predicted = Predicted(batch.labels.energy, batch.labels.forces, None)
    assert per_structure(LossConfig(), predicted, *batch).tolist() == [0.0] * 6
    assert "virial_abs" not in error_sums(LossConfig(), predicted, *batch)
