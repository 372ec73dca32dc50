import jax
import numpy as np
import pytest
from pair_potential import NEIGHBORS

from forgefield.data.batching import Target, needed_capacity
from forgefield.data.structures import Structure
from forgefield.trainers.losses import Loss, Predicted, error_sums
from forgefield.trainers.metrics import metrics


@pytest.fixture
def packed(x64):
    """Two labelled structures, of 2 atoms with a virial and of 3 without an energy, in a batch with room for 4."""
    one = Structure(
        np.array([1, 8]),
        np.array([[0.0, 0, 0], [1.0, 0, 0]]),
        energy=-443.0,  # the shifts are -443.6
        forces=np.array([[0.1, 0, 0], [-0.1, 0, 0]]),
        virial=np.diag([0.3, 0.0, 0.0]),
        energy_weight=2.0,
    )
    other = Structure(
        np.array([1, 1, 1]),
        np.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]]),
        forces=np.zeros((3, 3)),
        forces_weight=0.5,
    )
    pairs = [NEIGHBORS.pairs(s) for s in (one, other)]
    capacity = needed_capacity([one, other], pairs)._replace(structures=4)
    return NEIGHBORS.pack([one, other], pairs, capacity, np.dtype(np.float64))


def predicted(batch):
    """Errors: dE 0.2 and irrelevant; dF 0.03 in one component and 0.06 in another; dV 0.4 in one component."""
    forces = np.zeros_like(batch.labels.forces)
    forces[:2] = [[0.13, 0, 0], [-0.1, 0, 0]]
    forces[4] = [0, 0.06, 0]
    forces[5:] = 99.0  # padding atoms do not count
    virial = np.zeros((4, 3, 3))
    virial[0] = [[0.3, 0.4, 0], [0, 0, 0], [0, 0, 0]]
    return Predicted(np.array([0.8, 123.0, 0.0, 0.0]), forces, virial)


def test_squared_errors_by_hand(packed):
    loss = Loss({"U": 3.0, "F": 5.0, "virial": 7.0})
    first = 3 * 2.0 * (0.2 / 2) ** 2 + 5 * 0.03**2 / (3 * 2) + 7 * (0.4 / 2) ** 2 / 9
    second = 5 * 0.5 * 0.06**2 / (3 * 3)
    result = loss.per_structure(predicted(packed), packed)
    np.testing.assert_allclose(result, [first, second, 0, 0], rtol=1e-12)


def test_huber_is_linear_beyond_delta(packed):
    loss = Loss({"U": 1.0, "F": 1.0}, kind="huber", huber_delta=0.05)
    first = 2.0 * 0.05 * (0.1 - 0.025) + 0.5 * 0.03**2 / 6
    second = 0.5 * 0.05 * (0.06 - 0.025) / 9
    result = loss.per_structure(predicted(packed)._replace(virial=None), packed)
    np.testing.assert_allclose(result, [first, second, 0, 0], rtol=1e-12)


def test_huber_has_a_finite_gradient_at_0(packed):
    loss = Loss(kind="huber")

    def total(forces):
        return loss.per_structure(Predicted(packed.labels.energy, forces, None), packed).sum()

    assert (jax.grad(total)(packed.labels.forces) == 0).all()


def test_an_additional_target_counts_by_its_components(packed):
    target = Target(np.array([[1.0, 2.0], [0, 0], [0, 0], [0, 0]]), np.array([3.0, 0, 0, 0]))
    batch = packed._replace(targets={"gap": target})
    found = predicted(batch)._replace(targets={"gap": np.array([[1.4, 2.2], [9, 9], [9, 9], [np.nan, 9]])})
    # deviations 0.4 and 0.2; Huber's penalty is linear beyond 0.3
    by_kind = {"mse": (0.4**2 + 0.2**2) / 2, "huber": (0.3 * (0.4 - 0.15) + 0.2**2 / 2) / 2}
    for kind, penalty in by_kind.items():
        loss = Loss({"gap": 5.0}, kind, huber_delta=0.3)
        np.testing.assert_allclose(loss.per_structure(found, batch), [5 * 3 * penalty, 0, 0, 0], rtol=1e-12)
    result = metrics({k: float(v) for k, v in error_sums(loss, found, batch).items()}, n_structures=2)
    assert result["gap_mae"] == pytest.approx(0.3)
    assert result["gap_rmse"] == pytest.approx(((0.4**2 + 0.2**2) / 2) ** 0.5)


def test_errors_count_labels_that_are_there(packed):
    loss = Loss()
    sums = error_sums(loss, predicted(packed), packed)
    result = metrics({k: float(v) for k, v in sums.items()}, n_structures=2)
    assert result["energy_mae"] == pytest.approx(0.1)  # the structure without energy is left out
    assert result["forces_mae"] == pytest.approx((0.03 + 0.06) / 15)
    assert result["forces_rmse"] == pytest.approx(((0.03**2 + 0.06**2) / 15) ** 0.5)
    assert result["virial_mae"] == pytest.approx(0.2 / 9)
    assert result["loss"] == pytest.approx((2 * 0.1**2 + 0.03**2 / 6 + 0.5 * 0.06**2 / 9) / 2)
