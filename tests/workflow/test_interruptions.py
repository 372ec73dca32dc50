"""A training that was killed, or lost the snakemake that started it, continues when snakemake is called again."""

import csv
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

EPOCHS = 200
TRAINING = ("--config", f"training={{epochs: {EPOCHS}}}")
RUN = "runs/water-tiny-jax"
LIMIT = 120.0
# an epoch that is done again, since its checkpoint was not written yet, takes another time
TIMES = ("seconds", "data_wait_ms_per_step")


@pytest.fixture
def workspace(finished_copy):
    """Everything is there but the training, which is to be longer."""
    shutil.rmtree(finished_copy.results / RUN)
    return finished_copy


def start(workspace, *words):
    """Start snakemake in a session of its own."""
    return subprocess.Popen(
        workspace.command(*TRAINING, *words),
        env=workspace.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def history(workspace):
    try:
        with open(workspace.results / RUN / "history.csv") as file:
            return [{k: v for k, v in row.items() if k not in TIMES} for row in csv.DictReader(file)]
    except FileNotFoundError:
        return []


def wait_for(workspace, epochs, process):
    """Wait until so many epochs are done; the history then."""
    deadline = time.monotonic() + LIMIT
    while len(rows := history(workspace)) < epochs:
        assert process.poll() is None, "snakemake ended before it could be interrupted"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return rows


def trainings(workspace):
    """The processes of the job that trains in a workspace."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            program = (path / "cmdline").read_bytes().split(b"\0")[1:2]
            if program and program[0].endswith(b"/train.py") and (path / "cwd").resolve() == workspace.path:
                found.append(int(path.name))
        except OSError:
            continue
    return found


def finish(workspace, *words, before):
    """Call snakemake once more: the training continues, and has each epoch once."""
    done = workspace.run(*TRAINING, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = history(workspace)
    assert [int(row["epoch"]) for row in rows] == list(range(1, EPOCHS + 1))
    assert rows[: len(before)] == before
    return (workspace.results / "logs/train/water-tiny-jax.log").read_text()


@pytest.mark.slow
def test_when_everything_was_killed_at_once(workspace):
    process = start(workspace)
    before = wait_for(workspace, 5, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert workspace.run("--unlock", *TRAINING).returncode == 0
    assert "continues after epoch" in finish(workspace, "--rerun-incomplete", before=before)
    assert workspace.jobs(*TRAINING) == set()


def test_when_the_job_is_killed_and_then_all_are_ended(workspace):
    process = start(workspace, "--retries", "1")
    before = wait_for(workspace, 5, process)
    for training in trainings(workspace):
        os.kill(training, signal.SIGKILL)
    # the same call tries again, from the checkpoint
    before = wait_for(workspace, len(before) + 5, process)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=LIMIT)
    assert trainings(workspace) == []
    assert "continues after epoch" in finish(workspace, "--forcerun", "train", before=before)
    # it is complete: a forced one gives the same at once
    weights = (workspace.results / RUN / "model/weights.safetensors").read_bytes()
    assert "complete: all" in finish(workspace, "--forcerun", "train", before=before)
    assert (workspace.results / RUN / "model/weights.safetensors").read_bytes() == weights


@pytest.mark.slow
def test_when_a_setting_is_changed_in_mid_run(workspace, monkeypatch):
    process = start(workspace)
    before = wait_for(workspace, 5, process)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=LIMIT)
    changed = ("--config", f"training={{epochs: {EPOCHS}, lr: 1e-4}}")
    refused = workspace.run(*changed)
    assert refused.returncode
    way_out = "(or `FORGEFIELD_ALLOW_CHANGED='training.lr' snakemake ...`)"
    assert way_out in (workspace.results / "logs/train/water-tiny-jax.log").read_text()
    monkeypatch.setenv("FORGEFIELD_ALLOW_CHANGED", "training.lr")
    done = workspace.run(*changed)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = history(workspace)
    assert rows[: len(before)] == before
    assert float(rows[-1]["lr"]) < 2e-4
    monkeypatch.delenv("FORGEFIELD_ALLOW_CHANGED")
    assert workspace.jobs(*changed) == set()
    kept = json.loads((workspace.results / RUN / "provenance.json").read_text())["trained"]["changed"]
    assert [line.split(": ")[1].split(" was")[0] for line in kept] == ["training.lr"]


def test_when_snakemake_alone_was_killed_the_next_call_waits_for_its_training(workspace):
    process = start(workspace)
    before = wait_for(workspace, 5, process)
    process.kill()
    process.wait()
    (training,) = trainings(workspace)
    os.kill(training, signal.SIGSTOP)
    assert workspace.run("--unlock", *TRAINING).returncode == 0
    again = start(workspace)
    log = workspace.results / "logs/train/water-tiny-jax.log"
    deadline = time.monotonic() + LIMIT
    while f"waiting for process {training} on " not in (log.read_text() if log.exists() else ""):
        assert again.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.kill(training, signal.SIGKILL)
    assert again.wait(timeout=LIMIT) == 0
    assert "continues after epoch" in log.read_text()
    finish(workspace, before=before)
