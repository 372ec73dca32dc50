"""A run file without the workflow: `forgefield train` and `test` as a user, torchrun or Slurm starts them."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import ase.io
import h5py
import numpy as np
import pytest
import yaml
from ase import Atoms

from forgefield.files import sha256_of
from forgefield.models.digest import model_sha256
from forgefield.models.potential import save_potential

FORGEFIELD = Path(sys.executable).with_name("forgefield")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python")
SIZES = {"train": 12, "valid": 5, "test": 2}
RUN = {f"{part}_path": f"{part}.extxyz" for part in SIZES} | {
    "output_path": "runs/mine",
    "foundation": "model",
    "backend": "fabric",
    "train_batch_size": 6,
    "max_epochs": 1,
    "training": {"precision": "float64"},
}
GRID = np.stack(np.meshgrid(*[np.arange(2)] * 3), axis=-1).reshape(-1, 3)


def frames(n, seed):
    """Labelled molecules and crystals of 2 to 8 atoms; energies like those of all electrons."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        size = int(rng.integers(2, 9))
        numbers = rng.choice([1, 8], size)
        crystal = {"cell": [5.0, 5.5, 6.0], "pbc": True} if i % 3 == 0 else {}
        atoms = Atoms(numbers, 1.4 * GRID[:size] + rng.uniform(-0.2, 0.2, (size, 3)), **crystal)
        atoms.info["REF_energy"] = float(sum({1: -13.6, 8: -2040.0}[z] for z in numbers) + rng.normal())
        atoms.arrays["REF_forces"] = rng.normal(size=(size, 3))
        yield atoms


@pytest.fixture
def folder(tmp_path, random_mace):
    """A directory with reference files, a foundation model and my_run.yaml."""
    for seed, (part, n) in enumerate(SIZES.items()):
        ase.io.write(tmp_path / f"{part}.extxyz", list(frames(n, seed)))
    start = replace(random_mace((1, 8)), pretrained=True, energy_shifts={1: -13.0, 8: -2041.0})
    save_potential(start, tmp_path / "model")
    (tmp_path / "my_run.yaml").write_text(yaml.safe_dump(RUN))
    return tmp_path


def command(folder, *words, launcher=(), **environment):
    words = [*map(str, launcher), str(FORGEFIELD), *words]
    return subprocess.run(words, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False)


def ok(done):
    assert done.returncode == 0, done.stderr
    return done


def results(output):
    predictions = {}
    for split in ("valid", "test"):
        with h5py.File(output / f"predictions_{split}.h5") as file:
            file.visititems(
                lambda name, item, split=split: (
                    predictions.update({f"{split}/{name}": item[()]})
                    if isinstance(item, h5py.Dataset) and item.shape
                    else None
                )
            )
    metrics = json.loads((output / "metrics.json").read_text())
    files = {split: sha256_of(output / f"predictions_{split}.h5") for split in ("valid", "test")}
    assert metrics.pop("predictions") == files
    assert metrics["model"] == model_sha256(output / "model")
    return metrics, predictions


def numbers(content, path=()):
    if isinstance(content, dict | list):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        return [pair for key, value in items for pair in numbers(value, (*path, key))]
    return [(path, content)]


def test_train_and_test_with_any_number_of_processes(folder):
    done = ok(command(folder, "train", "my_run.yaml", "devices=2", "training.lr=1e-4"))
    output = folder / "runs/mine"
    assert "distributed" not in done.stderr  # Lightning's reports
    said = "runs/mine/data: 12 train, 5 valid, 2 test; of 19 frames 0 rejected, 0 unused"
    assert done.stderr.splitlines()[0] == said
    assert yaml.safe_load((output / "config.yaml").read_text())["training"]["lr"] == 1e-4
    found = []
    for devices in (1, 2, 3):
        done = ok(command(folder, "test", "my_run.yaml", f"devices={devices}"))
        assert done.stdout.count("Errors of mine") == 1
        assert [path.name for path in output.glob(".*")] == [".lock"]
        found.append(results(output))
    (metrics, predictions), *others = found
    frames_of_test = ase.io.read(folder / "test.extxyz", ":")
    np.testing.assert_allclose(predictions["test/reference/energy"], [a.info["REF_energy"] for a in frames_of_test])
    assert metrics["splits"]["valid"]["finetuned"]["energy"]["n"] == SIZES["valid"]
    for other_metrics, other_predictions in others:
        assert other_predictions.keys() == predictions.keys()
        for name, values in predictions.items():
            np.testing.assert_allclose(other_predictions[name], values, rtol=1e-12, atol=1e-12, err_msg=name)
        for (path, value), (_, other) in zip(numbers(metrics), numbers(other_metrics), strict=True):
            assert other == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value), path


def test_what_was_made_is_made_again_only_from_something_else(folder):
    words = ("train", "my_run.yaml", "backend=jax", "training.precision=float32")
    ok(command(folder, *words))
    output = folder / "runs/mine"
    made = [output / "data/train.h5", output / "foundation/model.json", output / "statistics.json"]
    before = [path.stat().st_mtime_ns for path in made]
    assert "continues after epoch 1" in ok(command(folder, *words, "max_epochs=2")).stderr
    assert [path.stat().st_mtime_ns for path in made] == before

    # other test data leave the training what it was
    ase.io.write(folder / "other.extxyz", list(frames(3, 9)))
    ok(command(folder, "test", "my_run.yaml", "test_path=other.extxyz"))
    assert results(output)[0]["splits"]["test"]["finetuned"]["energy"]["n"] == 3
    assert "continues after epoch 2" in ok(command(folder, *words, "max_epochs=3", "test_path=other.extxyz")).stderr
    assert made[2].stat().st_mtime_ns == before[2]


def test_stores_and_statistics_that_there_are_are_used(folder):
    ok(command(folder, "train", "my_run.yaml", "backend=jax"))
    first = folder / "runs/mine"
    stores = [f"{part}_path={first / 'data' / part}.h5" for part in SIZES]
    given = ("--statistics", str(first / "statistics.json"))
    ok(command(folder, "train", "my_run.yaml", "backend=jax", "output_path=runs/other", *stores, *given))
    other = folder / "runs/other"
    assert not (other / "statistics.json").exists()
    assert not (other / "data/conversion.json").exists()
    assert (other / "history.csv").read_text().splitlines()[0] == (first / "history.csv").read_text().splitlines()[0]
    weights = "model/weights.safetensors"
    assert (other / weights).read_bytes() == (first / weights).read_bytes()


def test_torchrun_makes_the_inputs_once_and_trains_and_tests(folder):
    done = ok(command(folder, "train", "my_run.yaml", "devices=2", launcher=TORCHRUN))
    assert done.stderr.count("epoch 1/1") == 1
    done = ok(command(folder, "test", "my_run.yaml", "devices=2", launcher=TORCHRUN))
    assert done.stdout.count("Errors of mine") == 1
    metrics, predictions = results(folder / "runs/mine")
    assert metrics["splits"]["valid"]["finetuned"]["energy"]["n"] == SIZES["valid"]
    assert list(predictions["valid/source_index"]) == list(range(SIZES["train"], SIZES["train"] + SIZES["valid"]))


def test_a_directory_that_the_processes_do_not_share(folder):
    """As on two nodes, each with a disk of its own."""
    (folder / "b").mkdir()
    for name in ("my_run.yaml", "model", *(f"{part}.extxyz" for part in SIZES)):
        (folder / "b" / name).symlink_to(folder / name)
    script = f'[ "$RANK" = 0 ] || cd b; exec {FORGEFIELD} train my_run.yaml devices=2'
    words = [*TORCHRUN, "bash", "-c", script]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    errors = {line.split("error: ")[1] for line in done.stderr.splitlines() if line.startswith("error: ")}
    assert done.returncode != 0
    assert len(errors) == 1
    assert "does not see in " in (message := errors.pop())
    assert str(folder / "b/runs/mine") in message
    assert "choose a directory on a file system that all nodes share" in message
    assert not (folder / "runs/mine").exists()
    assert not (folder / "b/runs/mine").exists()


def test_training_needs_no_test_data(folder):
    run = {key: value for key, value in RUN.items() if key != "test_path"}
    (folder / "my_run.yaml").write_text(yaml.safe_dump(run))
    ok(command(folder, "train", "my_run.yaml"))
    data = folder / "runs/mine/data"
    assert sorted(path.name for path in data.glob("*.h5")) == ["train.h5", "valid.h5"]
    done = command(folder, "test", "my_run.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith("error: test_path (datasets.data.split.test): missing; give the file of the test str")
    ok(command(folder, "test", "my_run.yaml", "test_path=test.extxyz"))
    ok(command(folder, "test", "my_run.yaml", "evaluation.splits=[valid]"))
    assert not (data / "test.h5").exists()
    stores = [f"{part}_path={data / part}.h5" for part in ("train", "valid")]
    ok(command(folder, "train", "my_run.yaml", "output_path=runs/other", *stores))


def test_a_zero_shot_model_of_another_architecture(folder, save_flashcart):
    save_flashcart(folder / "cart", elements=("H", "O"))
    cart = {"architecture": "flashcart", "foundation": "cart"}
    ok(command(folder, "import-model", "--config", json.dumps({"models": {"cart": cart}, "model": "cart"}), "-o", "m"))
    ok(command(folder, "train", "my_run.yaml"))
    done = command(folder, "test", "my_run.yaml", "--model", "m")
    assert done.returncode == 2
    assert done.stderr == (
        "error: --model m is a model of architecture flashcart, but models.model.architecture is mace; choose another "
        "model or write architecture: flashcart\n"
    )
    assert not (folder / "runs/mine/metrics.json").exists()


def test_fewer_structures_than_processes_train(folder):
    ase.io.write(folder / "train.extxyz", list(frames(2, 0)))
    ok(command(folder, "train", "my_run.yaml", "devices=3"))
    assert len((folder / "runs/mine/history.csv").read_text().splitlines()) == 2


def test_a_loss_that_is_not_finite_names_the_users_frames(folder):
    done = command(folder, "train", "my_run.yaml", "training.lr=1e300")
    assert done.returncode == 2
    assert re.search(r"step 2: the loss .* not finite, in train\.extxyz, frames (\d+, ){5}\d+; check", done.stderr)


@pytest.mark.parametrize(
    ("number", "settings"),
    [
        (signal.SIGINT, ["backend=jax"]),
        (signal.SIGTERM, ["backend=fabric"]),
        (signal.SIGUSR1, ["backend=fabric", "devices=2"]),
        (signal.SIGTERM, ["backend=jax", "devices=2", "parallelism=mpi"]),
        (signal.SIGINT, ["backend=jax", "n_nodes=2"]),
    ],
    ids=lambda value: value.name if isinstance(value, signal.Signals) else " ".join(value),
)
def test_a_signal_saves_the_training_and_says_how_to_go_on(folder, number, settings):
    words = [FORGEFIELD, "train", "my_run.yaml", "max_epochs=100000", "training.precision=float32", *settings]
    words.append("training.checkpoint_every=1000000")
    training = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
    history = folder / "runs/mine/history.csv"
    while not history.exists():
        assert training.poll() is None, training.stderr.read()
        time.sleep(0.05)
    training.send_signal(number)
    written = training.communicate(timeout=60)[1]
    assert training.returncode == 75, written
    announced, stopped = [line for line in written.splitlines() if line.startswith((number.name, "stopped"))]
    assert announced == f"{number.name}: the training finishes its step and is saved; a second signal ends it at once"
    assert re.fullmatch(
        r"stopped by a signal; .*epoch \d+ is saved in runs/mine/checkpoints: the same command continues there", stopped
    )
    assert "Traceback" not in written
    assert len(list((folder / "runs/mine/checkpoints").iterdir())) == 1
    deadline = time.monotonic() + 10
    while left := alive_in_session(training.pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_a_training_goes_on_as_it_began_or_not_at_all(folder):
    def train(*words):
        return command(folder, "train", "my_run.yaml", "max_epochs=9", *words)

    limit = "training.stop_before=0.1 s"  # over before the first step
    done = train(limit)
    assert done.returncode == 75, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "stopped before the time of training.stop_before; 1 step of epoch 1 is saved in runs/mine/checkpoints: "
        "the same command continues there"
    )
    begun = "error: runs/mine/checkpoints: the training is after 1 step of epoch 1, and"
    done = train("training.lr=0.1")
    assert done.returncode == 2
    assert done.stderr.startswith(f"{begun} training.lr was 0.001 and is now 0.1; set it back to continue")

    (folder / "train.extxyz").rename(folder / "kept.extxyz")
    ase.io.write(folder / "train.extxyz", list(frames(SIZES["train"], 7)))
    done = train()
    assert done.returncode == 2
    assert f"\n{begun} data/train.h5 changed (made from train.extxyz), statistics changed" in done.stderr
    assert "data/valid.h5" not in done.stderr

    (folder / "kept.extxyz").rename(folder / "train.extxyz")
    done = train("training.lr=0.1", "--allow-changed", "training.lr", "devices=2", "training.eval_batch=3", limit)
    assert done.returncode == 75, done.stderr
    converted, *said = done.stderr.splitlines()
    assert converted.startswith("runs/mine/data: 12 train, ")  # again, from the file that is back
    assert said[0] == (
        "goes on as --allow-changed says, though training.lr was 0.001 and is now 0.1: "
        "no training in one go gives this result"
    )
    assert said[1].startswith("note: devices x n_nodes was 1 and is now 2, training.eval_batch was 32 and is now 3; ")
    assert said[2] == "continues after 1 step of epoch 1, step 1; from runs/mine/checkpoints"
    assert "; epoch 1 is saved in" in said[-1] or "; 2 steps of epoch 1 is saved in" in said[-1]


def alive_in_session(session):
    """Command lines of the processes of a session that are neither gone nor zombies."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, _, own = (path / "stat").read_text().rpartition(") ")[2].split()[:4]
            if int(own) == session and state != "Z":
                found.append((path / "cmdline").read_bytes().replace(b"\0", b" "))
    return found


def wait_for_a_checkpoint(folder, training):
    while not list((folder / "runs/mine/checkpoints").glob("epoch_*")):
        assert training.poll() is None
        time.sleep(0.05)


def test_a_second_command_on_a_run_is_refused_until_the_first_is_gone(folder):
    words = [FORGEFIELD, "train", "my_run.yaml", "max_epochs=100000"]
    training = subprocess.Popen(words, cwd=folder, stderr=subprocess.DEVNULL)
    wait_for_a_checkpoint(folder, training)
    refused = f"error: runs/mine: another command (process {training.pid} on {os.uname().nodename}) is working on this"
    for verb in ("train", "test"):
        done = command(folder, verb, "my_run.yaml", "max_epochs=1")
        assert done.returncode == 2
        assert done.stderr.startswith(refused)
    (listed,) = json.loads(ok(command(folder, "runs", "runs", "--json")).stdout)
    assert (listed["run"], listed["state"]) == ("runs/mine", "running")
    training.kill()
    training.wait()
    (listed,) = json.loads(ok(command(folder, "runs", "runs", "--json")).stdout)
    assert listed["state"] == "stopped"
    assert listed["step"] >= 2 * listed["epoch"] > 0
    assert listed["where"].startswith("continues after epoch ")
    done = ok(command(folder, "train", "my_run.yaml", "max_epochs=1"))
    assert "complete: " in done.stderr


def test_a_reference_file_that_was_replaced_in_the_middle_of_a_run_is_refused(folder):
    training = subprocess.Popen([FORGEFIELD, "train", "my_run.yaml", "max_epochs=100000"], cwd=folder)
    wait_for_a_checkpoint(folder, training)
    training.kill()
    training.wait()
    shutil.copy(folder / "train.extxyz", folder / "kept.extxyz")
    ase.io.write(folder / "train.extxyz", list(frames(SIZES["train"], seed=9)))
    done = command(folder, "train", "my_run.yaml", "max_epochs=100000")
    assert done.returncode == 2
    assert re.search(r"error: runs/mine/checkpoints: .*data/train\.h5 changed.*set it back", done.stderr), done.stderr
    (listed,) = json.loads(ok(command(folder, "runs", "runs", "--json")).stdout)
    assert listed["state"] == "failed"
    assert "data/train.h5 changed" in listed["where"]
    (folder / "kept.extxyz").rename(folder / "train.extxyz")
    assert "complete: " in ok(command(folder, "train", "my_run.yaml", "max_epochs=1")).stderr


def test_a_run_that_is_complete_says_so(folder):
    ok(command(folder, "train", "my_run.yaml"))
    done = ok(command(folder, "train", "my_run.yaml"))
    line = r"complete: all 1 epochs are done, the best is epoch 1, of validation loss [\d.]+; to train longer, raise "
    assert re.fullmatch(rf"{line}training\.epochs \(max_epochs\)\n", done.stderr)


def test_srun_starts_a_jax_process_on_each_node(folder):
    words = ("train", "my_run.yaml", "backend=jax")
    ok(command(folder, *words, "output_path=runs/one"))
    done = command(folder, *words, "n_nodes=2", SLURM_JOB_NUM_NODES="2")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: n_nodes: 2 nodes are asked for, but this is one process; start it by `srun --n"
    )
    slurm = {"SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_NODELIST": "localhost", "SLURM_LOCALID": "0"}
    slurm |= {"SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "2"}
    processes = [
        subprocess.Popen(
            [FORGEFIELD, *words, "n_nodes=2"], cwd=folder, env=os.environ | slurm | {"SLURM_PROCID": str(i)}
        )
        for i in range(2)
    ]
    assert [process.wait() for process in processes] == [0, 0]
    losses = [
        next(csv.DictReader((folder / "runs" / name / "history.csv").read_text().splitlines()))["valid_loss"]
        for name in ("one", "mine")
    ]
    assert float(losses[1]) == pytest.approx(float(losses[0]), rel=1e-10)


def edited(part, frame, change):
    """A mistake in one frame of a reference file."""

    def make(folder):
        atoms = ase.io.read(folder / f"{part}.extxyz", ":")
        change(atoms[frame])
        ase.io.write(folder / f"{part}.extxyz", atoms)

    return make


def apart(folder):
    """No two atoms near each other."""
    atoms = ase.io.read(folder / "train.extxyz", ":")
    for one in atoms:
        one.pbc = False
        one.positions *= 10
    ase.io.write(folder / "train.extxyz", atoms)


MISTAKES = {
    "no such label": (None, ["datasets.data.keys.energy=my_energy"], "keys.energy: 'my_energy'"),
    "no label at all": (
        edited("valid", 2, lambda a: (a.info.clear(), a.arrays.pop("REF_forces"))),
        [],
        "valid.extxyz, frame 2: neither energy nor forces; repair or remove it",
    ),
    "one label missing": (
        edited("train", 3, lambda a: a.info.pop("REF_energy")),
        [],
        "train.extxyz, frame 3: no energy, which others have",
    ),
    "label that is NaN": (
        edited("valid", 1, lambda a: a.arrays["REF_forces"].__setitem__((0, 0), np.nan)),
        [],
        "valid.extxyz, frame 1: forces NaN or infinite at atom 0",
    ),
    "unknown element": (
        edited("train", 2, lambda a: a.numbers.__setitem__(0, 17)),
        [],
        "train.extxyz, frame 2: Cl is unknown to the model",
    ),
    "unknown element in valid": (
        edited("valid", 2, lambda a: a.numbers.__setitem__(0, 17)),
        [],
        "valid.extxyz, frame 2: Cl is unknown to the model",
    ),
    "no edges": (apart, [], "no two atoms are within the model's cutoff of 3 Å"),
    "another architecture": (
        None,
        ["models.model.architecture=flashcart"],
        "is a model of architecture mace, but models.model.architecture is flashcart",
    ),
    "no such model": (lambda folder: shutil.rmtree(folder / "model"), [], "foundation: model does not exist"),
    "no such file": (None, ["train_path=trian.extxyz"], "trian.extxyz: no such file; did you mean train.extxyz?"),
    "one file in two parts": (
        None,
        ["valid_path=train.extxyz"],
        "train.extxyz: given as train_path (datasets.data.split.train) and as valid_path (datasets.data.split.valid);",
    ),
    "no batch": (
        None,
        ["training.drop_last=true", "train_batch_size=13"],
        "training.drop_last leaves nothing of 12 training structures, which do not fill one batch of 13; lower",
    ),
    "no place for the run": (None, ["output_path=null"], "output_path: missing; give the directory of the run"),
    "far more processes than cores": (None, ["devices=1000"], "devices: 1000 are asked for on"),
    "far more devices of one process than cores": (
        None,
        ["backend=jax", "training.batch=999", "devices=999"],
        "devices: 999 are asked for on",
    ),
    "a file in the way": (
        None,
        ["output_path=my_run.yaml/x"],
        "output_path: my_run.yaml/x cannot be made a directory (",
    ),
    "unknown key": (None, ["trainin.lr=1"], "my_run.yaml: trainin: unknown key; did you mean training?"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_before_training_in_one_line_and_leaves_nothing(folder, mistake):
    make, words, message = MISTAKES[mistake]
    if make:
        make(folder)
    done = command(folder, "train", "my_run.yaml", "devices=2", *words)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode == 2, done.stderr
    assert len(errors) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert message in errors[0]
    assert done.stdout == ""
    assert not (folder / "runs/mine").exists()
