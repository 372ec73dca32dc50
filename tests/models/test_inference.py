import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.models import inference
from forgefield.models.inference import Predictor, predict


@pytest.fixture(scope="module")
def predictor(potential):
    return Predictor(potential, wanted="virial")


@pytest.fixture(scope="module")
def tiny(make_potential):
    """A potential that compiles in no time."""
    return make_potential(l_max=1, correlation=(1,), interactions=("RealAgnosticInteractionBlock",))


@pytest.fixture(scope="module")
def predictions(predictor, structures):
    return list(predictor(structures))


def test_forces_are_minus_the_energy_gradient(predictor, predictions, structures):
    step = 1e-4
    for which, atom, axis in [(0, 2, 1), (1, 0, 2), (2, 1, 0)]:
        moved = []
        for sign in (1, -1):
            positions = structures[which].positions.copy()
            positions[atom, axis] += sign * step
            moved.append(replace(structures[which], positions=positions))
        up, down = (_one(predictor, structures, which, s).energy for s in moved)
        assert predictions[which].forces[atom, axis] == pytest.approx((down - up) / (2 * step), rel=1e-6, abs=1e-7)


def test_stress_is_the_energy_gradient_by_strain(predictor, predictions, structures):
    step = 1e-4
    which = 1
    for i, j in [(0, 0), (1, 2)]:
        energies = []
        for sign in (1, -1):
            strain = np.eye(3)
            strain[i, j] += sign * step / 2
            strain[j, i] += sign * step / 2
            s = structures[which]
            strained = replace(s, positions=s.positions @ strain, cell=s.cell @ strain)
            energies.append(_one(predictor, structures, which, strained).energy)
        derivative = (energies[0] - energies[1]) / (2 * step)
        assert predictions[which].stress[i, j] * structures[which].volume == pytest.approx(derivative, rel=1e-6)


def test_only_whole_cells_have_a_stress(predictions):
    assert [p.stress is not None for p in predictions] == [False, True, True, False, False, True]


@pytest.mark.parametrize("which", ["rotation", "reflection"])
def test_energies_are_invariant_and_forces_turn_along(predictor, predictions, structures, which):
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn)) * (1 if which == "rotation" else -1)
    turned = [replace(s, positions=s.positions @ turn.T, cell=s.cell @ turn.T) for s in structures]
    for before, after in zip(predictions, predictor(turned), strict=True):
        assert after.energy == pytest.approx(before.energy, rel=1e-11)
        np.testing.assert_allclose(after.forces, before.forces @ turn.T, atol=1e-10)
        if before.stress is not None:
            np.testing.assert_allclose(after.stress, turn @ before.stress @ turn.T, atol=1e-10)


def test_order_of_atoms_and_place_do_not_matter(predictor, predictions, structures):
    changed, orders = [], []
    for s in structures:
        order = np.random.default_rng(4).permutation(len(s))
        changed.append(Structure(s.numbers[order], s.positions[order] + np.array([50.0, -20.0, 3.0]), s.cell, s.pbc))
        orders.append(order)
    for before, after, order in zip(predictions, predictor(changed), orders, strict=True):
        assert after.energy == pytest.approx(before.energy, rel=1e-10)
        np.testing.assert_allclose(after.forces, before.forces[order], atol=1e-9)


def test_distant_parts_add_up(predictor, predictions, structures):
    first, second = structures[0], structures[4]
    both = Structure(
        np.concatenate([first.numbers, second.numbers]),
        np.concatenate([first.positions, second.positions + np.array([40.0, 0.0, 0.0])]),
    )
    joined = next(predictor([both, *structures[1:4], structures[5]]))
    assert joined.energy == pytest.approx(predictions[0].energy + predictions[4].energy, rel=1e-11)


def test_predictions_come_in_order_whatever_the_batch(tiny, structures, monkeypatch):
    together = list(Predictor(tiny)(structures))
    for before, after in zip(together, Predictor(tiny, batch=2)(structures), strict=True):
        assert after.energy == pytest.approx(before.energy, rel=1e-12)
        np.testing.assert_allclose(after.forces, before.forces, atol=1e-12)
    monkeypatch.setattr(inference, "MAX_SLOTS", 1)
    assert [len(group) for group, _ in Predictor(tiny).groups(structures)] == [1] * len(structures)


def test_structures_are_read_only_as_far_as_needed(tiny, structures):
    read = []
    stream = predict(tiny, (read.append(i) or s for i, s in enumerate(structures * 2)), batch=2)
    next(stream)
    assert len(read) == 3


def test_similar_batches_share_one_shape(predictor, structures):
    list(predictor(structures))
    before = list(predictor._function._capacities)
    list(predictor([replace(s, positions=s.positions * 1.01) for s in structures]))
    list(predictor(structures[:4]))
    assert predictor._function._capacities == before


def test_shifts_are_added(tiny, structures):
    shifts = {1: 1e3, 6: -2e4, 8: 0.5}
    plain, shifted = (list(Predictor(p)(structures)) for p in (tiny, replace(tiny, energy_shifts=shifts)))
    expected = [p.energy + sum(shifts[z] for z in s.numbers) for p, s in zip(plain, structures, strict=True)]
    np.testing.assert_allclose([p.energy for p in shifted], expected, rtol=1e-14)


def test_float32_keeps_its_digits_far_from_the_origin(tiny, structures):
    near = Predictor(tiny, precision="float32")(structures)
    away = [replace(s, positions=s.positions + 1000.0) for s in structures]
    for before, after in zip(near, predict(tiny, away, precision="float32"), strict=True):
        np.testing.assert_allclose(after.forces, before.forces, atol=1e-7)


def test_unknown_element_is_named_with_its_frame(potential):
    iron = Structure(np.array([1, 26]), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.5]]), source_index=7)
    with pytest.raises(UserError, match=r"frame 7: element Fe is unknown to the model \(it knows H, C, O\)"):
        list(predict(potential, [iron]))


@pytest.mark.parametrize("outside", [False, True])
def test_precision_is_kept_from_and_left_to_the_caller(tiny, structures, outside):
    expected = next(predict(tiny, structures))
    with jax.enable_x64(outside):
        stream = predict(tiny, structures)
        fine = next(stream)
        assert jnp.arange(3.0).dtype == (jnp.float64 if outside else jnp.float32)
        coarse = next(predict(tiny, structures, precision="float32"))
    assert fine.energy == expected.energy
    assert coarse.forces.dtype == np.float64
    assert 1e-10 < np.abs(coarse.forces - fine.forces).max() < 1e-4


def _one(predictor, structures, which, replacement):
    """The prediction for a replaced structure; the batch keeps its shape, so nothing is compiled again."""
    return list(predictor([*structures[:which], replacement, *structures[which + 1 :]]))[which]


def test_results_that_are_no_numbers_name_the_frame(potential, structures):
    name = "readouts.0.linear.weight"
    lost = replace(potential, parameters=dict(potential.parameters) | {name: potential.parameters[name] * np.inf})
    with pytest.raises(UserError, match="frame 4: the model gives energy NaN or infinite") as caught:
        list(predict(lost, structures[4:]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": np.array([[0.0, 0.0, 0.0], [0.0, np.nan, 0.0]])}, "frame 4: position of atom 1 NaN or infinite"),
        ({"cell": np.full((3, 3), np.inf)}, "frame 4: cell NaN or infinite"),
        ({"numbers": np.zeros(0, int), "positions": np.zeros((0, 3))}, "frame 4: no atoms"),
    ],
)
def test_a_structure_that_is_none_is_refused_by_frame(potential, structures, changes, message):
    with pytest.raises(UserError, match=message):
        list(predict(potential, [replace(structures[4], **changes)]))


def test_an_unknown_precision_is_refused(potential):
    with pytest.raises(UserError, match=r"precision 'float16': unknown; did you mean float\d\d\?"):
        predict(potential, [], precision="float16")


@pytest.mark.parametrize("engine", ["jax", "torch"])
def test_engines_agree_and_energies_alone_are_the_same(potential, predictions, structures, engine):
    alone = predict(potential, structures, wanted="energy", engine=engine)
    whole = predict(potential, structures, wanted="virial", engine=engine)
    for expected, energy, found in zip(predictions, alone, whole, strict=True):
        assert energy.forces is None
        assert energy.stress is None
        assert energy.energy == pytest.approx(expected.energy, rel=1e-12)
        assert found.energy == pytest.approx(expected.energy, rel=1e-12)
        np.testing.assert_allclose(found.forces, expected.forces, atol=1e-11)
        if expected.stress is not None:
            np.testing.assert_allclose(found.stress, expected.stress, atol=1e-11)


@pytest.mark.parametrize("engine", ["jax", "torch"])
def test_a_potential_of_other_numbers_shares_what_is_prepared_and_compiled(tiny, structures, engine):
    """And has its own results; one with another cutoff shares nothing."""
    changed = {name: 1.3 * values for name, values in tiny.parameters.items()}
    other = replace(tiny, parameters=changed, energy_shifts={1: 1.0, 6: 2.0, 8: 3.0})
    first = Predictor(tiny, engine=engine)
    alike = first.alike(other)
    for prepared in first.prepared(first.groups(structures)):
        found = list(alike.predict(prepared))
        for own, expected in zip(found, predict(other, structures, engine=engine), strict=True):
            assert own.energy == pytest.approx(expected.energy, rel=1e-12)
            np.testing.assert_allclose(own.forces, expected.forces, atol=1e-11)
    assert first.alike(replace(tiny, cutoff=2.5)) is None
    if engine == "jax":
        assert alike._function._evaluate is first._function._evaluate
        assert next(alike(structures)).energy == found[0].energy


def test_two_devices_predict_the_same():
    script = Path(__file__).with_name("predict_on_two_devices.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == "same 7\n", done.stderr


def test_forgotten_sizes_leave_no_trace(tiny, structures):
    """Which shape a batch is padded to, on which its rounding depends, follows from batches before."""
    fresh, used = Predictor(tiny, wanted="energy"), Predictor(tiny, wanted="energy")
    list(used(8 * structures[:2]))
    used.forget_sizes()
    for predictor in (fresh, used):
        list(predictor(structures[:2]))
    assert used._function._capacities == fresh._function._capacities
