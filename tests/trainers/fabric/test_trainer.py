from dataclasses import replace

import numpy as np
import pytest
import torch
from labelled_data import labelled_structures, run_config
from scripted import Scripted

from forgefield.data.reader import StructureList
from forgefield.errors import StoppedError, UserError
from forgefield.trainers import jax_engine
from forgefield.trainers.checkpoints import saved_checkpoints
from forgefield.trainers.fabric import engine
from forgefield.trainers.fabric.trainer import FabricTrainer
from forgefield.trainers.parallel import SingleDevice
from forgefield.trainers.record import Place

COLUMNS = ("lr", "train_loss", "valid_loss", "valid_energy_mae_meV_per_atom", "valid_forces_mae_meV_per_A")


@pytest.fixture
def trainer(small_potential):
    """A function that makes a trainer of the small model with its data."""

    def make(path, data, valid=None, **training):
        config = run_config(**training)
        made = FabricTrainer(
            small_potential,
            config.training,
            engine.prepare(config),
            checkpoint_path=path / "checkpoints",
            log_file=path / "history.csv",
            progress=False,
        )
        made.set_datasets(StructureList(data), valid and StructureList(valid))
        return made

    return make


@pytest.mark.parametrize(
    ("data", "valid", "settings"),
    [
        # 52 steps of uneven batches, the last of each epoch with 2 structures
        (labelled_structures(11), labelled_structures(7, seed=5), {"batch": 3, "epochs": 13}),
        # a batch without any edge, where most parameters have no gradient
        (labelled_structures(3)[1:], None, {"batch": 1, "epochs": 3, "clip_norm": 1.0, "ema": None}),
    ],
    ids=["uneven", "edgeless"],
)
def test_trains_as_jax_does(tmp_path, small_potential, data, valid, settings):
    config = run_config(**settings, batching="fixed", checkpoint_every=100)
    valid = valid and StructureList(valid)
    trained = []
    for name, module in {"jax": jax_engine, "fabric": engine}.items():
        files = {"checkpoints": tmp_path / name, "log_file": tmp_path / f"{name}.csv", "fingerprint": {}}
        devices = SingleDevice() if name == "jax" else engine.prepare(config)
        made = module.make_trainer(config, devices, small_potential, StructureList(data), valid, **files)
        made.train(config.training.epochs)
        trained.append(made)
    one, other = trained
    assert one.step == other.step
    for column in COLUMNS:
        expected, found = ([row[column] for row in made.history] for made in trained)
        if expected[0] is not None:
            np.testing.assert_allclose(found, expected, rtol=1e-8, err_msg=column)
    start = small_potential.parameters
    for expected, found in ((one.params, other.params), (one.best_params, other.best_params)):
        assert found.keys() == expected.keys() == start.keys()
        for name in start:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-8, atol=1e-8, err_msg=name)
    assert all(np.any(other.params[name] != start[name]) for name in start)


@pytest.mark.parametrize(
    ("precision", "others"),
    [
        ("float32", {"batching": "fixed"}),
        ("float64", {"batching": "fixed"}),
        ("float64", {"batching": "dynamic"}),
        ("bf16-mixed", {}),
        ("float64", {"optimizer": "muon", "weight_decay": 0.01, "micro_batches": 3, "clip_norm": 0.1}),
    ],
)
def test_continues_bit_for_bit(trainer, tmp_path, precision, others):
    data, settings = labelled_structures(11), {"batch": 4, "epochs": 3, "precision": precision} | others
    straight = trainer(tmp_path / "straight", data, data[:3], **settings)
    straight.train(3)
    first = trainer(tmp_path / "stopped", data, data[:3], **settings)
    assert first.resume() is None
    with pytest.raises(StoppedError, match=r"stopped .*; epoch 1 and 2 steps of epoch 2 is saved in"):
        first.train(3, Scripted(first, "ask@4"))
    second = trainer(tmp_path / "stopped", data, data[:3], **settings)
    assert second.resume() == Place(1, 2)
    assert second.step == 5
    second.train(3)
    for one, other in ((straight.params, second.params), (straight.best_params, second.best_params)):
        for name, value in one.items():
            assert value.dtype == np.dtype("float64" if precision == "float64" else "float32")
            np.testing.assert_array_equal(other[name], value)
    times = {"seconds": 0, "data_wait_ms_per_step": 0}
    for one, other in zip(straight.history, second.history, strict=True):
        assert one | times == other | times


def test_float64_is_really_in_effect(trainer, tmp_path):
    data = labelled_structures(4)
    losses = []
    for precision in ("float32", "float64"):
        made = trainer(tmp_path / precision, data, batch=4, epochs=1, precision=precision)
        made.train(1)
        losses.append(made.history[0]["train_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert [loss == float(np.float32(loss)) for loss in losses] == [True, False]


@pytest.mark.parametrize("others", [{}, {"clip_norm": 0.01, "ema": 0.5}, {"optimizer": "adamw", "weight_decay": 0.1}])
def test_micro_batches_change_nothing(trainer, tmp_path, others):
    data, settings = labelled_structures(11), {"batching": "fixed", "batch": 4, "epochs": 4} | others
    found = []
    for parts in (1, 2, 5):
        made = trainer(tmp_path / str(parts), data, data[:4], micro_batches=parts, **settings)
        seen = []
        made._model.register_forward_pre_hook(lambda _, inputs, seen=seen: seen.append(len(inputs[0].n_atoms)))
        made.train(1)
        training = seen[:-1]  # without the one batch of validation
        assert sum(training) == 11
        assert max(training) == {1: 4, 2: 2, 5: 1}[parts]
        made.train(4)
        found.append(made)
    first, *others = found
    for other in others:
        for column in COLUMNS:
            assert [r[column] for r in other.history] == pytest.approx([r[column] for r in first.history], rel=1e-12)
        for name, value in first.params.items():
            np.testing.assert_allclose(other.params[name], value, rtol=1e-12, atol=1e-13, err_msg=name)


def test_mixed_precision_multiplies_in_bfloat16_and_keeps_float32(trainer, tmp_path):
    data, found = labelled_structures(6), {}
    for precision in ("float32", "bf16-mixed"):
        made = trainer(tmp_path / precision, data, data[:3], batch=6, epochs=1, precision=precision)
        linear = made._model.network.interactions[1].linear
        seen = []
        linear.register_forward_hook(lambda module, inputs, output, seen=seen: seen.append(output.dtype))
        made.train(1)
        assert set(seen) == {torch.float32 if precision == "float32" else torch.bfloat16}
        assert {v.dtype for k, v in made._arrays().items() if k != "step"} == {np.dtype("float32")}
        found[precision] = made.history[0]
    for column in COLUMNS[1:]:
        one, other = (row[column] for row in found.values())
        assert other != one
        assert other == pytest.approx(one, rel=0.03)


def test_a_checkpoint_of_another_model_is_refused(trainer, tmp_path):
    data = labelled_structures(4)
    trainer(tmp_path, data, batch=4, epochs=1).train(1)
    other = trainer(tmp_path, data, batch=4, epochs=1, ema=None)
    with pytest.raises(UserError, match=r"epoch_000001: its average do not match this model"):
        other.resume()


def test_a_bad_label_stops_before_anything_is_overwritten(trainer, tmp_path):
    data = labelled_structures(4)
    made = trainer(tmp_path, data, batch=2, epochs=3)
    made.train(1)
    history = (tmp_path / "history.csv").read_text()
    made.set_datasets(StructureList([replace(s, energy=np.inf) if s.source_index == 20 else s for s in data]))
    with pytest.raises(UserError, match=r"epoch 2, step \d: .* not finite, in frames? .*\b20\b.*epoch_000001"):
        made.train(3)
    assert all(np.isfinite(value).all() for value in made.params.values())
    assert (tmp_path / "history.csv").read_text() == history
    assert [p.name for p in saved_checkpoints(tmp_path / "checkpoints")] == ["epoch_000001"]


def test_a_bad_label_of_the_validation_data_is_named(trainer, tmp_path):
    data = labelled_structures(4)
    spoiled = [replace(s, forces=np.nan * s.forces) if s.source_index == 20 else s for s in data]
    made = trainer(tmp_path, data, spoiled, batch=2, epochs=1)
    with pytest.raises(UserError, match=r"epoch 1, evaluation: .* not finite, in frames? .*\b20\b.*; check"):
        made.train(1)
    assert saved_checkpoints(tmp_path / "checkpoints") == []


def test_stops_early_and_keeps_the_best(trainer, tmp_path):
    data = labelled_structures(4)
    settings = {"lr": 0.5, "clip_norm": None, "ema": None, "early_stopping": 2}  # diverges
    made = trainer(tmp_path, data, data, batch=2, epochs=30, **settings)
    made.train(30)
    losses = [row["valid_loss"] for row in made.history]
    assert made.best_epoch == 1 + int(np.argmin(losses)) == len(losses) - 2 < 28
    assert any(np.any(made.best_params[name] != value) for name, value in made.params.items())
