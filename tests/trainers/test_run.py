import csv
from dataclasses import replace

import jax
import numpy as np
import pytest
import yaml
from pair_potential import random_structures

from forgefield.config import load_config
from forgefield.config.model import ModelConfig
from forgefield.data.store import StoreWriter
from forgefield.errors import MachineError, UserError
from forgefield.files import write_json
from forgefield.models.foundation import import_model
from forgefield.models.inference import predict
from forgefield.models.potential import load_potential, save_potential
from forgefield.statistics.summarize import UNITS
from forgefield.trainers.checkpoints import saved_checkpoints
from forgefield.trainers.record import Place
from forgefield.trainers.run import train_run
from forgefield.units import Units


@pytest.fixture(autouse=True)
def _settings_of_this_process(monkeypatch):
    """A run's settings of JAX end with the test; nothing is cached in the user's home."""
    monkeypatch.setenv("FORGEFIELD_ALLOCATOR", "default")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture
def inputs(tmp_path, random_mace):
    """Directories of data and model, and the file of statistics."""
    rng = np.random.default_rng(0)
    data = [
        replace(s, energy=-200.0 * (s.numbers == 8).sum(), forces=rng.normal(size=(len(s), 3)))
        for s in random_structures(14, largest=5)
    ]
    for split, part in {"train": data[:10], "valid": data[10:]}.items():
        write_store(tmp_path / "data" / f"{split}.h5", part)
    save_potential(random_mace((1, 8), r_max=4.0), tmp_path / "model")
    statistics = {"energy_shifts": {"H": 0.0, "O": -200.0}, "force_rms": 1.0, "neighbors": {"average": 2.0}}
    write_json(tmp_path / "statistics.json", statistics | {"units": UNITS})
    return tmp_path / "data", tmp_path / "model", tmp_path / "statistics.json"


def write_store(path, structures):
    path.parent.mkdir(exist_ok=True)
    with StoreWriter(
        path,
        n_structures=len(structures),
        max_atoms=max(map(len, structures)),
        units=Units("eV", "angstrom"),
        dtype="float64",
        has_virial=False,
        attributes={"split": path.stem, "source": "made up", "source_sha256": "0"},
    ) as writer:
        writer.append(structures)


def settings(**training):
    training = {"batch": 5, "epochs": 2, "schedule": {"kind": "constant"}} | training
    config = {
        "dataset": "d",
        "datasets": {"d": {"source": "d.xyz", "units": {"energy": "eV", "length": "angstrom"}}},
        "model": "m",
        "models": {"m": {"elements": ["H", "O"]}},
        "training": training,
    }
    return load_config(config).run("d-m-jax")


def history(output):
    with open(output / "history.csv") as file:
        return list(csv.DictReader(file))


def test_a_run_its_repetition_and_its_continuation(inputs, tmp_path, capfd):
    output = tmp_path / "run"
    train_run(settings(), *inputs, output)
    assert [row["epoch"] for row in history(output)] == ["1", "2"]
    log = capfd.readouterr().err
    assert "epoch 2/2" in log
    assert "kernels: reference, on cpu" in log
    assert yaml.safe_load((output / "config.yaml").read_text())["training"]["batch"] == 5
    trained, start = load_potential(output / "model"), load_potential(inputs[1])
    assert trained.energy_shifts == {1: 0.0, 8: -200.0}
    assert trained.parameters.keys() == start.parameters.keys()
    assert all(v.dtype == np.float32 for v in trained.parameters.values())
    assert all(np.any(trained.parameters[k] != start.parameters[k].astype(np.float32)) for k in start.parameters)

    before = (output / "history.csv").read_bytes(), (output / "model" / "weights.safetensors").read_bytes()
    (output / "history.csv").unlink()
    train_run(settings(), *inputs, output)  # complete: only writes what it knows
    assert ((output / "history.csv").read_bytes(), (output / "model" / "weights.safetensors").read_bytes()) == before
    assert "complete: all 2 epochs are done, the best is epoch 2, of validation loss " in capfd.readouterr().err

    train_run(settings(epochs=3), *inputs, output)
    rows = history(output)
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert before[0].decode().splitlines() == (output / "history.csv").read_text().splitlines()[:3]

    (output / "checkpoints-before").touch()
    with pytest.raises(MachineError, match=r"checkpoints-before'; repair this and run again: training continues from"):
        train_run(settings(lr=0.002), *inputs, output)
    (output / "checkpoints-before").unlink()
    train_run(settings(lr=0.002), *inputs, output)
    assert "training starts anew, because training.lr was 0.001 and is now 0.002" in capfd.readouterr().err
    assert [float(row["lr"]) for row in history(output)] == pytest.approx([0.002, 0.002])
    before = yaml.safe_load((output / "checkpoints-before" / "1" / "config.yaml").read_text())
    assert before["training"]["lr"] == 0.001
    assert (output / "checkpoints-before" / "1" / "model" / "model.json").exists()
    train_run(settings(lr=0.002, epochs=1), *inputs, output)
    log = capfd.readouterr().err
    assert "note: training.epochs was 2 and is now 1: nothing is left to be trained\n" in log
    assert "complete: 2 epochs are done, more than the 1 that are asked for, the best is epoch 2" in log


@pytest.mark.parametrize("backend", ["jax", "fabric"])
def test_both_engines_heed_the_keys_about_checkpoints(inputs, tmp_path, backend):
    def places(**keys):
        config = settings(batch=2, **keys).model_copy(update={"backend": backend})
        train_run(config, *inputs, tmp_path / "run")
        return [Place.of(path) for path in saved_checkpoints(tmp_path / "run" / "checkpoints")]

    found = places(epochs=1, checkpoint_steps=1, keep_checkpoints=100)
    assert any(place.steps for place in found)
    found = places(epochs=2, checkpoint_minutes=1e-9, keep_checkpoints=3)
    assert len(found) == 3
    assert found[1].epoch == 1
    assert found[1].steps > 0


@pytest.mark.parametrize("backend", ["jax", "fabric"])
def test_what_is_refused_or_only_moved_leaves_checkpoints_where_they_are(inputs, tmp_path, capfd, backend):
    def config(micro_batches=1, **keys):
        made = settings(**keys)
        training = made.training.model_copy(update={"micro_batches": micro_batches})
        return made.model_copy(update={"backend": backend, "training": training})

    train_run(config(), *inputs, tmp_path / "run")
    with pytest.raises(UserError, match=r"training\.drop_last leaves nothing of \d+ training structures"):
        train_run(config(drop_last=True, batch=64), *inputs, tmp_path / "run")
    moved = [path.rename(path.with_name(f"moved-{path.name}")) for path in (*inputs, tmp_path / "run")]
    capfd.readouterr()
    train_run(config(epochs=3, micro_batches=2 if backend == "fabric" else 1), *moved)
    assert "continues after epoch 2" in capfd.readouterr().err
    assert not (moved[-1] / "checkpoints-before").exists()


MEANS = """
import torch

class Means(torch.nn.Module):
    @classmethod
    def build(cls, config, statistics):
        return cls()

    def __init__(self):
        super().__init__()
        self.depth = torch.nn.Parameter(torch.ones(1))
        self.register_buffer("kept", torch.zeros(()))
        self.register_buffer("passing", torch.zeros(()), persistent=False)

    def forward(self, graph):
        if self.training:
            self.kept += 1
            self.passing += 1
        energy = self.depth * (3.0 - torch.linalg.vector_norm(graph.vectors, dim=1)) ** 2
        return energy.new_zeros(len(graph.n_atoms)).index_add(0, graph.atom_structure[graph.receiver], energy)
"""


def test_a_trained_model_has_the_buffers_that_are_persistent(inputs, tmp_path, monkeypatch):
    (tmp_path / "passing_means.py").write_text(MEANS)
    monkeypatch.syspath_prepend(tmp_path)
    model = ModelConfig(architecture="python", elements=["H", "O"], r_max=3.0, python={"object": "passing_means:Means"})
    import_model("m", model, tmp_path / "means")
    config = settings(epochs=1).model_copy(update={"backend": "fabric"})
    train_run(config, inputs[0], tmp_path / "means", inputs[2], tmp_path / "run")
    trained = load_potential(tmp_path / "run" / "model")
    assert trained.buffers == {"kept": 2.0}
    assert list(predict(trained, random_structures(1)))


def test_an_element_that_the_model_does_not_know(inputs, tmp_path):
    foreign = [replace(s, numbers=np.full(len(s), 17)) for s in random_structures(5)]
    write_store(inputs[0] / "valid.h5", foreign)
    with pytest.raises(UserError, match=r"valid.h5: frame \d+: Cl is unknown to the model .* \(it knows H, O\)"):
        train_run(settings(), *inputs, tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()


def test_a_missing_input_is_named(inputs, tmp_path):
    (inputs[0] / "train.h5").unlink()
    with pytest.raises(UserError, match=r"train.h5: no such file; run the stage that makes it first"):
        train_run(settings(), *inputs, tmp_path / "run")


def test_a_process_that_is_not_among_those_it_needs(inputs, tmp_path):
    config = settings().model_copy(update={"parallelism": "jax", "n_nodes": 2})
    with pytest.raises(UserError, match=r"jax found 1 devices in 1 processes, but devices x n_nodes is 2; .*train"):
        train_run(config, *inputs, tmp_path / "run")


def test_a_file_that_cannot_be_written(inputs, tmp_path):
    (tmp_path / "run" / "config.yaml").mkdir(parents=True)
    with pytest.raises(MachineError, match=r"config.yaml.*run again: training continues"):
        train_run(settings(), *inputs, tmp_path / "run")
