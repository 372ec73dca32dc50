import csv
import errno
import subprocess
import sys

import numpy as np
import pytest
from labelled_data import SHIFTS, labelled_structures, run_config, write_stores

from forgefield.errors import UserError
from forgefield.files import write_json
from forgefield.models.inference import predict
from forgefield.models.potential import load_potential, save_potential
from forgefield.statistics.summarize import UNITS as STATISTICS_UNITS
from forgefield.trainers import run as runs
from forgefield.trainers.fabric.engine import prepare
from forgefield.trainers.fabric.processes import FabricProcesses
from forgefield.trainers.run import train_run


@pytest.fixture
def inputs(tmp_path, small_potential):
    """Directories of data and model, and the file of statistics."""
    data = labelled_structures(10)
    write_stores(tmp_path / "data", train=data[:6], valid=data[6:])
    save_potential(small_potential, tmp_path / "model")
    shifts = {"units": STATISTICS_UNITS, "energy_shifts": {"H": SHIFTS[1] + 0.1, "O": SHIFTS[8]}}
    write_json(tmp_path / "statistics.json", shifts | {"force_rms": 2.0, "neighbors": {"average": 4.0}})
    return tmp_path / "data", tmp_path / "model", tmp_path / "statistics.json"


def history(output):
    with open(output / "history.csv") as file:
        return list(csv.DictReader(file))


def test_a_run_and_its_continuation(inputs, tmp_path, capfd):
    output = tmp_path / "run"
    train_run(run_config(batch=4, epochs=2), *inputs, output)
    assert [row["step"] for row in history(output)] == ["2", "4"]
    assert "epoch 2/2" in capfd.readouterr().err
    train_run(run_config(batch=4, epochs=3), *inputs, output)
    assert "continues after epoch 2, step 4" in capfd.readouterr().err
    assert [row["epoch"] for row in history(output)] == ["1", "2", "3"]
    assert "backend: fabric" in (output / "config.yaml").read_text()


def test_the_trained_model_predicts_in_jax_what_was_validated_in_pytorch(inputs, tmp_path):
    train_run(run_config(batch=4, epochs=2), *inputs, tmp_path / "run")
    potential = load_potential(tmp_path / "run" / "model")
    assert (potential.config["scale"], potential.config["avg_num_neighbors"]) == (2.0, 4.0)
    assert potential.energy_shifts == {1: SHIFTS[1] + 0.1, 8: SHIFTS[8]}
    valid = labelled_structures(10)[6:]
    made = list(predict(potential, valid))
    energy = np.mean([abs(p.energy - s.energy) / len(s) for p, s in zip(made, valid, strict=True)])
    forces = np.concatenate([(p.forces - s.forces).ravel() for p, s in zip(made, valid, strict=True)])
    best = history(tmp_path / "run")[potential.source["trained"]["epoch"] - 1]
    assert float(best["valid_energy_mae_meV_per_atom"]) == pytest.approx(1000 * energy, rel=1e-9)
    assert float(best["valid_forces_mae_meV_per_A"]) == pytest.approx(1000 * np.abs(forces).mean(), rel=1e-9)


class Lost(FabricProcesses):
    """Processes that have lost one of theirs when they meet after an evaluation."""

    def exchange(self, item):
        raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


def test_a_lost_connection_is_not_taken_for_a_fault_of_a_disk(inputs, tmp_path):
    config = run_config(batch=4, epochs=1)
    with pytest.raises(ConnectionResetError):
        train_run(config, *inputs, tmp_path / "run", Lost(prepare(config).fabric))


def test_processes_that_nobody_has_started(inputs, tmp_path):
    config = run_config().model_copy(update={"devices": 2})
    with pytest.raises(UserError, match="found 1 processes, but devices x n_nodes is 2; start this by `forgefield tr"):
        train_run(config, *inputs, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_another_architecture(inputs, tmp_path):
    model = inputs[1] / "model.json"
    model.write_text(model.read_text().replace('"mace"', '"nequip"'))
    with pytest.raises(UserError, match="architecture 'nequip', expected one of: mace, flashcart, python"):
        train_run(run_config(), *inputs, tmp_path / "run")


def test_an_engine_that_is_not_installed(inputs, tmp_path, monkeypatch):
    monkeypatch.setitem(runs.ENGINES, "fabric", "no_such_module")
    with pytest.raises(UserError, match=r"needs no_such_module, .* pip install 'forgefield\[fabric\]'"):
        train_run(run_config(), *inputs, tmp_path / "run")


@pytest.mark.parametrize(("module", "absent"), [("fabric.engine", "jax"), ("jax_engine", "torch"), ("run", "jax")])
def test_each_engine_loads_without_the_other(module, absent):
    code = f"import sys; sys.modules[{absent!r}] = None; import forgefield.trainers.{module}"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
