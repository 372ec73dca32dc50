"""How runs stand, read from what trainings leave."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from forgefield.cli.app import app
from forgefield.errors import MachineError
from forgefield.prepare import only_one
from forgefield.prepare.standing import find_runs, noted_error
from forgefield.trainers.checkpoints import save_checkpoint
from forgefield.trainers.record import Place

ROW = {
    "lr": 0.1,
    "train_loss": 2.0,
    "valid_energy_mae_meV_per_atom": None,
    "valid_forces_mae_meV_per_A": 3.0,
    "data_wait_ms_per_step": 0.1,
    "seconds": 1.0,
}


@pytest.fixture
def folder(tmp_path):
    """One run of each state; the caller must be quick to look at the one that runs."""
    make(tmp_path / "done", losses=[3.0, 1.0, 2.0])
    make(tmp_path / "deep" / "halfway", losses=[3.0, 4.0], steps=5)
    make(tmp_path / "full", losses=[3.0])
    with pytest.raises(MachineError), noted_error(tmp_path / "full"):
        raise MachineError("checkpoints: No space left on device")
    make(tmp_path / "new", losses=[])
    (tmp_path / "new" / ".data.x1").mkdir()
    (tmp_path / "new" / ".data.x1" / ".lock").touch()  # of a conversion
    with only_one(tmp_path / "working"):
        yield tmp_path


def make(run, losses, steps=0):
    """What a training of three epochs leaves after these validation losses, and so many steps."""
    with only_one(run):
        pass
    (run / "config.yaml").write_text("training: {epochs: 3}\n")
    if not losses:
        return
    rows = [{"epoch": i + 1, "step": 10 * (i + 1), "valid_loss": loss} | ROW for i, loss in enumerate(losses)]
    partial = {"steps": steps, "loss_sum": 0.0, "waited": 0.0, "seconds": 0.0}
    best = min(range(len(losses)), key=losses.__getitem__)
    record = {"rows": rows, "best_epoch": best + 1, "best_loss": losses[best], "partial": partial}
    content = {"fingerprint": {}, "notes": {}, "complete": len(losses) == 3, "record": record}
    save_checkpoint(run / "checkpoints", Place(len(losses), steps), {"a": np.zeros(2)}, content)
    if len(losses) == 3:
        (run / "model").mkdir()
        (run / "model" / "model.json").write_text("{}")


def test_each_run_is_listed_with_its_state_and_place(folder):
    found = {run.run.removeprefix(f"{folder}/"): run for run in find_runs(folder)}
    assert {name: run.state for name, run in found.items()} == {
        "deep/halfway": "stopped",
        "done": "complete",
        "full": "failed",
        "new": "stopped",
        "working": "running",
    }
    halfway = found["deep/halfway"]
    assert (halfway.epoch, halfway.step, halfway.epochs) == (2, 25, 3)
    assert (halfway.best_epoch, halfway.best_loss) == (1, 3.0)
    assert halfway.where == "continues after epoch 2 and 5 steps of epoch 3"
    assert found["full"].where == "checkpoints: No space left on device"
    assert found["new"].where == "there is no checkpoint"
    assert found["working"].where.startswith("process ")


def test_a_damaged_checkpoint_hides_neither_its_run_nor_others(folder):
    checkpoints = folder / "done" / "checkpoints"
    damaged = {"epoch_000004": "{", "epoch_000005": "{}", "epoch_000006": None}
    for name, text in damaged.items():
        (checkpoints / name).mkdir()
        if text:
            (checkpoints / name / "content.json").write_text(text)
    found = {run.run.removeprefix(f"{folder}/"): run for run in find_runs(folder)}
    assert len(found) == 5
    assert (found["done"].state, found["done"].epoch) == ("complete", 3)


def test_a_complete_run_of_which_more_is_asked_is_not_complete(folder):
    (folder / "done" / "config.yaml").write_text("training: {epochs: 4, early_stopping: null}\n")
    assert [run.state for run in find_runs(folder / "done")] == ["stopped"]
    (folder / "done" / "config.yaml").write_text("training: {epochs: 4, early_stopping: 1}\n")
    assert [run.state for run in find_runs(folder / "done")] == ["complete"]


def test_an_error_is_forgotten_when_the_run_goes_on(folder):
    with noted_error(folder / "full"):
        pass
    assert {run.run: run.state for run in find_runs(folder / "full")} == {str(folder / "full"): "stopped"}


def test_the_command_prints_a_table_or_json(folder):
    run = CliRunner().invoke(app, ["runs", str(folder), "--json"])
    content = {entry["run"]: entry for entry in json.loads(run.stdout)}
    assert content[str(folder / "done")]["best_loss"] == 1.0
    shown = CliRunner().invoke(app, ["runs", str(folder)], env={"COLUMNS": "200"}).stdout
    (line,) = [line for line in shown.splitlines() if "deep/halfway" in line]
    assert "stopped" in line
    assert "2 of 3" in line
    assert "3 (epoch 1)" in line
