import re
import time
from dataclasses import replace

import h5py
import jax
import numpy as np
import optax
import pytest
from pair_potential import NEIGHBORS, START, TRUE, arrays, morse_template
from scripted import Scripted

from forgefield.data import plans
from forgefield.data.loaders import BatchLoader
from forgefield.data.packing import PackedNeighbors
from forgefield.data.reader import StructureList
from forgefield.data.store import Store, StoreWriter
from forgefield.errors import StoppedError, UserError
from forgefield.trainers import ForceMatching
from forgefield.trainers.checkpoints import saved_checkpoints
from forgefield.trainers.optimizers import optimizer, schedule
from forgefield.trainers.record import Place
from forgefield.units import Units


def trainer(start=START, lr=0.02, template=morse_template, **settings):
    settings = {"batch": 10, "parallelism": "single", "progress": False} | settings
    return ForceMatching(arrays(start), optimizer("adam", lr), template, NEIGHBORS, **settings)


def assert_equal(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


# -- what is learned -------------------------------------------------------------------------------------------------


def test_recovers_the_parameters_that_made_the_forces(labelled):
    lr = schedule(0.03, 4 * 60, "cosine", final_fraction=1e-3)
    made = ForceMatching(arrays(START), optimizer("adam", lr), morse_template, NEIGHBORS, batch=10, progress=False)
    made.set_datasets(labelled[:40], labelled[40:])
    made.train(60)
    for name in ("depth", "width", "length"):
        np.testing.assert_allclose(made.best_params[name][:2], TRUE[name][:2], atol=0.02)
    assert made.evaluate("validation")["forces_mae"] < 0.003
    assert made.history[-1]["valid_loss"] < 1e-3 * made.history[0]["valid_loss"]


def test_labels_of_the_tests_are_derivatives_of_their_energies(labelled):
    structure, step = labelled[1], 1e-5
    assert structure.pbc.all()
    model = trainer(TRUE)

    def energy(moved):
        return model.predict([moved])[0].energy

    def moved(by):
        positions = structure.positions.copy()
        positions[0, 1] += by
        return replace(structure, positions=positions)

    def strained(by):
        deformation = np.eye(3) + by * np.array([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]])
        return replace(structure, positions=structure.positions @ deformation, cell=structure.cell @ deformation)

    slope = (energy(moved(step)) - energy(moved(-step))) / (2 * step)
    assert structure.forces[0, 1] == pytest.approx(-slope, abs=1e-6)
    slope = (energy(strained(step)) - energy(strained(-step))) / (2 * step)
    assert structure.virial[0, 1] == pytest.approx(-slope, abs=1e-6)


def test_virials_count_only_where_wanted_and_there(labelled):
    trained = {}
    for name, gammas, data in [
        ("without", {"U": 1.0, "F": 1.0}, labelled),
        ("wanted", {"U": 1.0, "F": 1.0, "virial": 1.0}, labelled),
        ("absent", {"U": 1.0, "F": 1.0, "virial": 1.0}, [replace(s, virial=None) for s in labelled]),
    ]:
        made = trainer(gammas=gammas)
        made.set_datasets(data[:40], data[40:])
        made.train(1)
        trained[name] = made
        assert ("virial_mae" in made.evaluate("validation")) == (name == "wanted")
    assert_equal(trained["without"].params, trained["absent"].params)
    assert not np.array_equal(trained["without"].params["depth"], trained["wanted"].params["depth"])


def test_batch_size_of_evaluation_does_not_change_its_result(labelled):
    results = []
    for eval_batch in (1, 7, 50):
        made = trainer(eval_batch=eval_batch, gammas={"U": 1.0, "F": 2.0, "virial": 3.0})
        made.set_dataset(labelled, "testing")
        results.append(made.evaluate())
    for other in results[1:]:
        assert other == pytest.approx(results[0], rel=1e-12)
    assert set(results[0]) == {f"{k}_{m}" for k in ("energy", "forces", "virial") for m in ("mae", "rmse")} | {"loss"}


def test_prediction_keeps_the_order_of_its_data(labelled):
    predicted = trainer(TRUE, eval_batch=8).predict(labelled, virial=True)
    assert [s.source_index for s in predicted] == list(range(50))
    for got, wanted in zip(predicted, labelled, strict=True):
        assert got.energy == pytest.approx(wanted.energy, abs=1e-9)
        np.testing.assert_allclose(got.forces, wanted.forces, atol=1e-12)
        np.testing.assert_allclose(got.virial, wanted.virial, atol=1e-12)


def test_average_is_what_is_validated_and_returned(labelled):
    plain, averaged = (trainer(ema=decay) for decay in (None, 0.9))
    for made in (plain, averaged):
        made.set_datasets(labelled[:40], labelled[40:])
        made.train(1)
    assert_equal(plain.params, averaged.params)
    expected, params = arrays(START), trainer()
    for step in range(1, 5):  # the same four steps, one by one
        one = trainer(lr=0.02)
        one.set_datasets(labelled[:40])
        params = _after_steps(one, step)
        slow = min(0.9, (1 + step) / (10 + step))
        expected = {k: slow * expected[k] + (1 - slow) * params[k] for k in expected}
    for name, value in expected.items():
        np.testing.assert_allclose(averaged.best_params[name], value, rtol=1e-12)


def _after_steps(made, steps):
    """Parameters after the first steps of an epoch."""
    loader = made._loaders["training"]
    loader.plan(1)
    state = made._state
    for _, loaded in zip(range(steps), loader.epoch(0), strict=False):
        state, _ = made._train_step(state, made._parallel.placed(loaded))
    return jax.tree.map(np.array, state.params)


def test_a_penalty_is_part_of_the_loss(labelled):
    near, free = trainer(penalty_fn=lambda params: 1e3 * ((params["width"] - 1.3) ** 2).sum()), trainer()
    for made in (near, free):
        made.set_dataset(labelled)
        made.train(10)
    assert abs(near.params["width"] - 1.3).max() < 0.2 * abs(free.params["width"] - 1.3).max()


def test_stores_open_or_not_and_lists_are_the_same_data(labelled, tmp_path):
    path = tmp_path / "train.h5"
    largest = max(map(len, labelled))
    settings = {"units": Units(), "dtype": np.float64, "has_virial": True, "attributes": {}}
    with StoreWriter(path, n_structures=len(labelled), max_atoms=largest, **settings) as writer:
        writer.append(labelled)
    with h5py.File(path) as file, Store(path) as store:
        found = []
        for dataset in (labelled, path, str(path), file, store):
            made = trainer()
            made.set_dataset(dataset)
            made.train(2)
            found.append(made.params)
    for other in found[1:]:
        assert_equal(found[0], other)


def test_predictions_lie_on_the_devices_of_their_batch(labelled):
    made = trainer(TRUE, parallelism="jax", batch=16)
    n_devices = len(jax.devices())
    for loaded, predicted in made.predict_batches(labelled[:20]):
        shards = predicted.energy.addressable_shards
        assert [shard.data.shape for shard in shards] == [(1, 16 // n_devices)] * n_devices
        assert len(loaded.part_lengths) == n_devices
    assert all(leaf.sharding.is_fully_replicated for leaf in jax.tree.leaves(made.params))


def test_batch_per_device_is_deprecated(x64):
    with pytest.warns(DeprecationWarning, match="batch_per_device is deprecated; give batch"):
        made = trainer(batch=None, batch_per_device=5)
    assert made._batch == 5


# -- when it stops, and what it compiles -----------------------------------------------------------------------------


def test_stops_early_and_keeps_the_best(labelled):
    made = trainer(TRUE, lr=0.05, early_stopping=3)  # can only get worse than the truth it starts from
    made.set_datasets(labelled[:40], labelled[40:])
    made.train(50)
    losses = [row["valid_loss"] for row in made.history]
    assert len(losses) < 50
    assert made.best_epoch == len(losses) - 3 == 1 + int(np.argmin(losses))
    assert made.evaluate("validation")["loss"] == pytest.approx(min(losses), rel=1e-12)


def test_an_incomplete_last_batch_counts_or_is_dropped(labelled):
    kept, dropped = trainer(), trainer(drop_last=True)
    for made in (kept, dropped):
        made.set_dataset(labelled[:45])
        made.train(2)
    assert (kept.step, dropped.step) == (10, 8)


def test_compiles_at_most_three_steps(labelled, monkeypatch):
    monkeypatch.setattr(plans, "WORTHWHILE_STEPS", 10)  # else one shape is best for so short a training
    traces = []

    def template(params):
        traces.append(1)
        return morse_template(params)

    made = trainer(template=template, batch=2)
    made.set_dataset(labelled)
    made.train(5)
    assert 1 < len(made._loaders["training"].capacities) <= 3
    assert 1 < len(traces) <= 3


def test_nothing_is_updated_by_a_gradient_that_is_not_finite(labelled):
    made = trainer(batch=50)
    made.set_dataset(labelled)
    made.train(1)
    before = jax.tree.map(np.array, made._state)
    made.set_dataset([replace(s, forces=np.full_like(s.forces, np.nan)) for s in labelled])
    with pytest.raises(UserError, match="epoch 2, step 1"):
        made.train(2)
    assert not made._state.sound
    assert_equal(made._state._replace(sound=True), before._replace(sound=True))


def test_a_bad_label_stops_before_anything_is_overwritten(labelled, tmp_path):
    made = trainer(checkpoint_path=tmp_path / "checkpoints", checkpoint_steps=1, log_file=tmp_path / "history.csv")
    made.set_datasets(labelled[:40], labelled[40:])
    made.train(2)
    history = (tmp_path / "history.csv").read_text()
    spoiled = [replace(s, energy=np.inf) if s.source_index == 17 else s for s in labelled[:40]]
    made.set_dataset(spoiled)
    with pytest.raises(UserError, match=r"not finite, in frames? .*\b17\b.*checkpoint is kept: ") as error:
        made.train(4)
    assert (tmp_path / "history.csv").read_text() == history
    step = int(re.match(r"epoch 3, step (\d): ", str(error.value))[1])
    newest, _ = saved_checkpoints(tmp_path / "checkpoints")
    assert Place.of(newest) == (2, step - 1)
    assert str(error.value).endswith(str(newest))


def test_the_history_tells_how_long_steps_wait_for_data(labelled):
    class SlowLoader(BatchLoader):
        def epoch(self, epoch, start=0):
            for loaded in super().epoch(epoch, start):
                time.sleep(0.02)
                yield loaded

    made = trainer()
    made.set_loader(SlowLoader(StructureList(labelled[:20]), NEIGHBORS, 10, seed=0, dtype=np.float64))
    made.train(1)
    # the first of two batches is not made ahead of anything
    assert made.history[0]["data_wait_ms_per_step"] >= 10.0


@pytest.mark.parametrize("label", ["energy", "forces"])
def test_a_bad_label_of_the_validation_data_is_named(labelled, tmp_path, label):
    made = trainer(checkpoint_path=tmp_path, eval_batch=4)
    spoiled = [replace(s, **{label: np.nan * getattr(s, label)}) if s.source_index == 45 else s for s in labelled]
    made.set_datasets(labelled[:40], spoiled[40:])
    frames = r"evaluation: the loss .* is not finite, in frames? .*\b45\b.*; check the labels"
    with pytest.raises(UserError, match=f"epoch 1, {frames}"):
        made.train(2)
    with pytest.raises(UserError, match=f"validation data, {frames}"):
        made.evaluate("validation")
    assert saved_checkpoints(tmp_path) == []


# -- continuing ------------------------------------------------------------------------------------------------------


def test_continues_bit_for_bit(labelled, tmp_path):
    settings = {"lr": schedule(0.02, 4 * 6, "cosine"), "ema": 0.9, "seed": 5}
    straight = trainer(**settings)
    straight.set_datasets(labelled[:40], labelled[40:])
    straight.train(6)
    first = trainer(**settings, checkpoint_path=tmp_path, checkpoint_steps=1)
    first.set_datasets(labelled[:40], labelled[40:])
    assert first.resume() is None
    with pytest.raises(StoppedError, match=r"stopped .*; epoch 2 and 3 steps of epoch 3 is saved in"):
        first.train(6, Scripted(first, "ask@9"))
    second = trainer(**settings, checkpoint_path=tmp_path)
    second.set_datasets(labelled[:40], labelled[40:])
    assert second.resume() == Place(2, 3)
    second.train(6)
    assert_equal(straight.params, second.params)
    assert_equal(straight.best_params, second.best_params)
    times = {"seconds": 0, "data_wait_ms_per_step": 0}
    for one, other in zip(straight.history, second.history, strict=True):
        assert one | times == other | times


def test_other_settings_are_refused_when_continuing(labelled, tmp_path):
    made = trainer(checkpoint_path=tmp_path, fingerprint={"lr": 0.02})
    made.set_dataset(labelled)
    made.train(1)
    with pytest.raises(UserError, match=r"lr was 0.02 and is now 0.1"):
        trainer(checkpoint_path=tmp_path, fingerprint={"lr": 0.1}).resume()


# -- files and mistakes ----------------------------------------------------------------------------------------------


def test_parameters_come_back_from_their_file(labelled, tmp_path):
    made = trainer(TRUE)
    made.save_energy_params(tmp_path / "params.safetensors")
    other = trainer(START)
    other.load_energy_params(tmp_path / "params.safetensors")
    assert_equal(other.params, arrays(TRUE))
    graph_energy = other.energy_fn  # ready to be called with a packed graph
    assert callable(graph_energy)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gammas": {"Fs": 1.0}}, "unknown term 'Fs'; did you mean 'F'"),
        ({"gammas": {"U": 0.0}}, "every weight is 0"),
        ({"parallelism": "mpirun"}, "'mpirun' is not available; choose one of auto, single, mpi, jax"),
        ({"batch": None}, "batch: give the number of structures per optimizer step"),
        ({"disable_shmap": True}, "disable_shmap: .* parallelism='jax'"),
    ],
)
def test_mistaken_arguments(x64, settings, message):
    with pytest.raises(UserError, match=message):
        trainer(**settings)


def test_mistaken_data(labelled):
    with pytest.raises(UserError, match="no training data"):
        trainer().train(1)
    with pytest.raises(UserError, match="'valid' is none of training, validation, testing"):
        trainer().set_dataset(labelled, "valid")
    patient = trainer(early_stopping=2)
    patient.set_dataset(labelled)
    with pytest.raises(UserError, match="needs validation data"):
        patient.train(1)


def test_float64_without_x64():
    with jax.enable_x64(False), pytest.raises(UserError, match="jax_enable_x64"):
        ForceMatching(arrays(START), optax.sgd(0.1), morse_template, PackedNeighbors(5.0, (1, 8)), batch=2)
