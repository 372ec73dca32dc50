"""However many processes share the batches, the training is the same."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from labelled_data import SETTINGS, labelled_structures, write_stores
from launching import free_port

from forgefield.config.model import ModelConfig
from forgefield.models.foundation import import_model
from forgefield.models.potential import save_potential
from forgefield.trainers.checkpoints import saved_checkpoints
from forgefield.trainers.record import Place

PROGRAM = Path(__file__).parent / "train_small.py"
EPOCHS = SETTINGS["epochs"]
TIMEOUT = 900  # of processes that wait for one another for ever
TIMES = ("seconds", "data_wait_ms_per_step")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, small_potential):
    """The directory of data and model."""
    directory = tmp_path_factory.mktemp("inputs") / "data"
    write_stores(directory, train=labelled_structures(20), valid=labelled_structures(7, seed=5))
    save_potential(small_potential, directory / "model")
    return directory


@pytest.fixture(scope="module")
def trained(inputs, tmp_path_factory):
    """A function that trains in so many processes; parameters by rank, and the rows of the history."""
    unbroken = {}

    def make(devices, epochs=EPOCHS, output=None, **settings):
        if output:
            return train(inputs, output, devices, epochs, **settings)
        key = (devices, epochs, json.dumps(settings))
        if key not in unbroken:
            unbroken[key] = train(inputs, tmp_path_factory.mktemp("run"), devices, epochs, **settings)
        return unbroken[key]

    return make


@pytest.fixture(scope="module", params=["fixed", "dynamic"])
def batching(request):
    return request.param


@pytest.fixture(scope="module")
def alone(trained, batching):
    return trained(1, batching=batching)


def train(inputs, output, devices, epochs=EPOCHS, **settings):
    subprocess.run(words(inputs, output, devices, epochs, json.dumps(settings)), check=True, timeout=TIMEOUT)
    return results(output, devices)


def words(*values):
    return [sys.executable, str(PROGRAM), *map(str, values)]


def results(output, devices):
    """The parameters of every rank, and the rows of the history."""
    ranks = [dict(np.load(output / f"rank_{i}.npz")) for i in range(devices)]
    with open(output / "history.csv") as file:
        return ranks, list(csv.DictReader(file))


def assert_same(found, expected):
    (ranks, rows), ((params,), expected_rows) = found, expected
    for rank in ranks:
        assert rank.keys() == params.keys()
        for name, value in params.items():
            assert rank[name].tobytes() == ranks[0][name].tobytes(), name
            np.testing.assert_allclose(rank[name], value, rtol=1e-10, atol=1e-10, err_msg=name)
    assert int(rows[-1]["step"]) == 4 * EPOCHS
    assert [row["epoch"] for row in rows] == [str(i + 1) for i in range(EPOCHS)]
    for row, other in zip(rows, expected_rows, strict=True):
        for name in row.keys() - TIMES:
            assert float(row[name]) == pytest.approx(float(other[name]), rel=1e-10), name


# of 4 steps in each epoch: in the sixth, and in the validation after it
@pytest.mark.parametrize(
    ("devices", "batching", "event", "place"),
    [(1, "fixed", "ask@24", (5, 4)), (2, "dynamic", "ask@21", (5, 2))],
    indirect=["batching"],
)
def test_a_training_that_is_killed_and_asked_to_stop_ends_with_the_same_bits(
    inputs, trained, batching, tmp_path, devices, event, place
):
    settings = json.dumps({"batching": batching, "checkpoint_steps": 3})
    codes = []
    for happens in ("kill@7", event):
        codes.append(subprocess.run(words(inputs, tmp_path, devices, EPOCHS, settings, happens)).returncode)
    assert codes == [3 if devices > 1 else -signal.SIGKILL, 75]
    newest, *_ = saved_checkpoints(tmp_path / "checkpoints")
    assert Place.of(newest) == place  # in the step after it was asked, all heard of it
    found, expected = trained(devices, output=tmp_path, batching=batching), trained(devices, batching=batching)
    for one, other in zip(found[0], expected[0], strict=True):
        for name, value in other.items():
            np.testing.assert_array_equal(one[name], value, err_msg=name)
    for row, other in zip(found[1], expected[1], strict=True):
        assert {k: v for k, v in row.items() if k not in TIMES} == {k: v for k, v in other.items() if k not in TIMES}


@pytest.mark.parametrize("devices", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_processes_give_the_same_training_as_one(trained, alone, batching, devices):
    assert_same(trained(devices, batching=batching), alone)


@pytest.mark.parametrize(("first", "then"), [(2, 1), pytest.param(1, 3, marks=pytest.mark.slow)])
def test_another_number_of_processes_continues_a_training(inputs, trained, alone, batching, tmp_path, first, then):
    stopped = words(inputs, tmp_path, first, EPOCHS, json.dumps({"batching": batching}), "ask@21")
    assert subprocess.run(stopped).returncode == 75
    assert Place.of(saved_checkpoints(tmp_path / "checkpoints")[0]) == (5, 2)
    assert_same(trained(then, output=tmp_path, batching=batching), alone)


PAIRS = """
import torch

class Pairs(torch.nn.Module):
    @classmethod
    def build(cls, config, statistics):
        return cls(config["r_max"])

    def __init__(self, r_max):
        super().__init__()
        self.r_max = r_max
        self.depth, self.unused = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(1))

    def forward(self, graph):
        x = torch.linalg.vector_norm(graph.vectors, dim=1) / self.r_max
        energy = self.depth[graph.species[graph.sender]] * (1 - x) ** 3
        return energy.new_zeros(len(graph.n_atoms)).index_add(0, graph.atom_structure[graph.receiver], energy)
"""
OTHERS = {
    "flashcart": {"flashcart": {"n_hidden_feats": 4, "l_max_edge_attrs": 1, "l_max_hidden_feats": 1, "correlation": 2}},
    "python": {"python": {"object": "small_pairs:Pairs"}},
}


def import_other(inputs, folder, monkeypatch, architecture, code=PAIRS):
    """Make ``folder/inputs`` of these data and a model of another architecture."""
    (folder / "small_pairs.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "small_pairs", raising=False)
    config = ModelConfig(architecture=architecture, elements=["H", "O"], r_max=3.0, **OTHERS[architecture])
    import_model("m", config, folder / "inputs" / "model")
    for split in ("train", "valid"):
        (folder / "inputs" / f"{split}.h5").symlink_to(inputs / f"{split}.h5")


@pytest.mark.parametrize("architecture", OTHERS)
def test_models_of_other_architectures(inputs, tmp_path, monkeypatch, architecture):
    import_other(inputs, tmp_path, monkeypatch, architecture)
    one, two = (train(tmp_path / "inputs", tmp_path / f"run-{n}", n) for n in (1, 2))
    assert_same(two, one)
    assert float(one[1][-1]["train_loss"]) < float(one[1][0]["train_loss"])


# draws random numbers, and keeps a mean of what it has met, which counts
DRAWING = PAIRS.replace(
    "torch.nn.Parameter(torch.ones(1))\n",
    "torch.nn.Parameter(torch.ones(1))"
    + """
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("batches", torch.tensor(0))
""",
).replace(
    " (1 - x) ** 3\n",
    """ (1 - x) ** 3 + self.seen.clone() * (1 - x) ** 4
        energy = torch.nn.functional.dropout(energy, 0.3, self.training)
        if self.training:
            self.seen += 0.1 * (x.detach().mean() - self.seen)
            self.batches += 1
""",
)


@pytest.mark.parametrize("devices", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_random_numbers_and_buffers_of_a_model_are_the_same_after_a_kill(inputs, tmp_path, monkeypatch, devices):
    import_other(inputs, tmp_path, monkeypatch, "python", DRAWING)
    settings, output = {"checkpoint_steps": 3, "ema": 0.9}, tmp_path / "killed"
    started = tmp_path / "inputs", output, devices, 3, json.dumps(settings)
    assert subprocess.run(words(*started, "kill@11")).returncode
    assert saved_checkpoints(output / "checkpoints")
    ranks, rows = train(tmp_path / "inputs", output, devices, 3, **settings)
    whole, whole_rows = train(tmp_path / "inputs", tmp_path / "whole", devices, 3, **settings)
    for name, value in whole[0].items():
        assert {rank[name].tobytes() for rank in ranks + whole} == {value.tobytes()}, name
    assert [row["valid_loss"] for row in rows] == [row["valid_loss"] for row in whole_rows]
    assert whole[0]["batches"] > 0
    assert whole[0]["seen"] > 0


@pytest.mark.parametrize("batching", ["dynamic"], indirect=True)  # the default
def test_processes_that_torchrun_started(inputs, alone, tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.run([*torchrun, *words(inputs, tmp_path, 2, EPOCHS)[1:]], check=True)
    assert_same(results(tmp_path, 2), alone)


@pytest.mark.parametrize("batching", ["dynamic"], indirect=True)  # the default
def test_processes_that_slurm_started(inputs, alone, tmp_path):
    step = {"SLURM_NTASKS": 2, "SLURM_STEP_NUM_TASKS": 2, "SLURM_NTASKS_PER_NODE": 2, "SLURM_NNODES": 1}
    meet = {"SLURM_NODEID": 0, "SLURM_JOB_NAME": "train", "MASTER_ADDR": "localhost", "MASTER_PORT": free_port()}
    started = []
    for i in range(2):
        own = step | meet | {"SLURM_PROCID": i, "SLURM_LOCALID": i}
        environment = os.environ | {name: str(value) for name, value in own.items()}
        started.append(subprocess.Popen(words(inputs, tmp_path, 2, EPOCHS), env=environment))
    assert [process.wait() for process in started] == [0, 0]
    assert_same(results(tmp_path, 2), alone)


@pytest.mark.parametrize(("split", "where"), [("train", r"step \d"), ("valid", "evaluation")])
def test_a_bad_label_on_one_process_stops_all(inputs, tmp_path, split, where):
    # a store holds no NaN, but a number whose square is infinite
    stores = {"train": labelled_structures(20), "valid": labelled_structures(7, seed=5)}
    stores[split] = [replace(s, energy=1e200) if s.source_index == 50 else s for s in stores[split]]
    write_stores(tmp_path / "inputs", **stores)
    (tmp_path / "inputs" / "model").symlink_to(inputs / "model")
    settings = json.dumps({"batching": "fixed"})  # at least four structures together
    done = subprocess.run(
        words(tmp_path / "inputs", tmp_path / "run", 2, 1, settings), stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "rror" in line or "Traceback" in line]
    found = re.match(rf"error: epoch 1, {where}: .* not finite, in .*{split}\.h5: frames ([\d, ]*); check", line)
    assert found, line
    assert "50" in found[1].split(", ")
    assert len(found[1].split(", ")) > 3  # of both processes
    assert not (tmp_path / "run" / "checkpoints").exists()
