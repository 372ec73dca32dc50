"""Jobs that end before their work is done: nothing is left over, and snakemake goes on by itself where it may."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

RUN = "ranks"
RANKS = {RUN: {"devices": 1, "n_nodes": 2, "parallelism": "mpi"}}
WEIGHTS = Path("results/runs", RUN, "model/weights.safetensors")
EPOCHS = 400
# what Slurm itself takes to end a job and to start another one
PATIENCE = 120.0
# minutes in which a job does not come to its end, and seconds that Snakemake takes before and after the training
STOP_BEFORE, STARTING = 0.5, 30.0


@pytest.fixture
def clone(prepared, clone_of):
    """A clone in which only training is left to be done, in more epochs than a job of a few seconds does."""
    return clone_of(prepared, runs=RANKS, training=prepared.training | {"epochs": EPOCHS})


@pytest.fixture(scope="module")
def straight(prepared, clone_of):
    """The weights of the same training without a break, on this machine."""
    clone = clone_of(prepared, runs=RANKS, training=prepared.training | {"epochs": EPOCHS})
    done = run_here(clone)
    assert done.returncode == 0, done.stderr
    return (clone.path / WEIGHTS).read_bytes()


def run_here(clone):
    command = [sys.executable, "-m", "snakemake", "--cores", "2", str(WEIGHTS)]
    return subprocess.run(command, cwd=clone.path, env=clone.environment, capture_output=True, text=True, timeout=900)


def preempt():
    """Let a job of a higher partition have both nodes."""
    subprocess.run(["srun", "-p", "high", "--nodes=2", "--exclusive", "--mem=0", "sleep", "1"], check=True, timeout=60)


def require_same_end(clone, process, straight, epochs=EPOCHS):
    """Snakemake ends well, with one history and the bits of a training that nobody has disturbed."""
    assert process.wait(timeout=900) == 0, clone.written()
    written = [int(line.split(",")[0]) for line in clone.history(RUN)[1:]]
    assert written == list(range(1, epochs + 1))
    assert (clone.path / WEIGHTS).read_bytes() == straight
    clone.wait_until_all_ended()


def test_a_mistake_that_a_job_finds_is_not_submitted_again(clone):
    with np.load(clone.path / "water.npz") as file:
        content = dict(file)
    content["F"][7, 0, 0] = np.nan
    np.savez(clone.path / "water.npz", **content)
    process = clone.start("--", "results/datasets/water/train.h5")
    assert process.wait(timeout=PATIENCE) == 1, clone.written()
    assert len(clone.submitted()) == 1, clone.written()
    assert "This is not submitted again" in clone.written()
    assert "results/logs/convert/water.log: error: " in clone.written()


def test_a_cancelled_job_leaves_no_process_and_ends_snakemake(clone):
    process = clone.start("--retries", "0", "--", str(WEIGHTS))
    clone.wait_for(lambda: len(clone.history(RUN)) > 2, process)
    assert len(clone.processes()) > 2
    start = time.monotonic()
    subprocess.run(["scancel", *clone.submitted()], check=True)
    assert process.wait(timeout=PATIENCE) == 1, clone.written()
    assert time.monotonic() - start < PATIENCE
    assert "CANCELLED" in clone.written()
    clone.wait_until_all_ended()


@pytest.mark.slow
def test_a_lost_process_is_named_and_the_training_continues(clone, straight):
    process = clone.start("--", str(WEIGHTS))
    clone.wait_for(lambda: len(clone.history(RUN)) > 20, process)
    os.kill(clone.process_of_rank(1), signal.SIGKILL)
    require_same_end(clone, process, straight)
    assert len(clone.submitted()) == 2, clone.written()
    assert "    the last lines of rank 1 (" in clone.written()
    assert re.search(r"error: rank 1 of the training on \S+ was lost \(Killed\)", clone.written())
    assert "continues after epoch" in (clone.results / "logs" / "train" / f"{RUN}.log").read_text()


@pytest.mark.slow
def test_a_preempted_training_continues_to_the_same_bits(clone, straight):
    process = clone.start("--", str(WEIGHTS))
    clone.wait_for(lambda: len(clone.history(RUN)) > 20, process)
    preempt()
    require_same_end(clone, process, straight)
    # Slurm has put it into its queue again by itself
    assert len(clone.submitted()) == 1, clone.written()
    log = (clone.results / "runs" / RUN / "ranks" / "rank_0.log").read_text()
    assert log.count("rank 0 on ") == 2


@pytest.mark.slow
def test_a_training_that_reaches_its_time_limit_continues_to_the_same_bits(clone, straight):
    clone.configure(slurm={"cpus_per_device": 1, "mem_mb": 3000, "hours": 0.03})
    process = clone.start("--", str(WEIGHTS))
    clone.wait_for(lambda: len(clone.history(RUN)) > 20, process)
    # however fast they are, they do not end before the limit, two minutes after the start
    for rank in (0, 1):
        os.kill(clone.process_of_rank(rank), signal.SIGSTOP)
    require_same_end(clone, process, straight)
    assert len(clone.submitted()) == 2, clone.written()
    assert "continues after epoch" in (clone.results / "logs" / "train" / f"{RUN}.log").read_text()


@pytest.mark.slow
def test_a_job_that_is_preempted_and_not_queued_again_is_submitted_again(clone, straight):
    process = clone.start("--", str(WEIGHTS))
    clone.wait_for(lambda: len(clone.history(RUN)) > 20, process)
    subprocess.run(["scontrol", "update", "PartitionName=debug", "PreemptMode=CANCEL"], check=True)
    try:
        preempt()
    finally:
        subprocess.run(["scontrol", "update", "PartitionName=debug", "PreemptMode=REQUEUE"], check=True)
    require_same_end(clone, process, straight)
    assert len(clone.submitted()) == 2, clone.written()
    assert "is over: PREEMPTED" in clone.written()


@pytest.mark.slow
def test_a_training_that_stops_in_time_by_itself_is_submitted_again(clone, straight):
    clone.configure(training=clone.training | {"stop_before": STOP_BEFORE})
    # as many jobs as it takes on this machine
    process = clone.start("--retries", "50", "--", str(WEIGHTS))
    require_same_end(clone, process, straight)
    first, *others = clone.submitted()
    assert others, clone.written()
    (log,) = (clone.path / ".snakemake" / "slurm_logs").rglob(f"{first}.log")
    said = log.read_text()
    assert "before the time of training.stop_before" in said
    assert "returned non-zero exit status 75." in said
    seconds = run_time(first)
    assert 0.5 * 60 * STOP_BEFORE < seconds < 60 * STOP_BEFORE + STARTING


@pytest.mark.slow
def test_a_training_that_gets_further_uses_no_retry_and_goes_on_beside_runs_that_cannot_start(clone, straight):
    others = {
        "too-large": {"slurm": {"cpus_per_device": 64}},
        "nowhere": {"slurm": {"partition": "no-such"}},
    }
    clone.configure(runs=RANKS | others, training=clone.training | {"stop_before": STOP_BEFORE})
    process = clone.start("--verbose", "--", *(str(WEIGHTS).replace(RUN, run) for run in (RUN, *others)))
    assert process.wait(timeout=900) == 1, clone.written()
    said = clone.written()
    assert (clone.path / WEIGHTS).read_bytes() == straight, said
    trained = len(clone.submitted()) - 1
    assert trained > 1, said
    assert said.count("This is no failure") == trained - 1
    assert set(re.findall(r"--attempt (\d+)", said)) == {"1"}
    assert said.count("This is not submitted again") == len(others)
    assert "waits for ever: PartitionConfig; change slurm.cpus_per_device" in said
    assert "invalid partition specified: no-such" in said


def run_time(job):
    """How long a job has run, in seconds, as Slurm knows it."""
    shown = subprocess.run(["scontrol", "-o", "show", "job", job], capture_output=True, text=True, check=True).stdout
    hours, minutes, seconds = map(int, re.search(r"RunTime=(\d+):(\d+):(\d+)", shown).groups())
    return 3600 * hours + 60 * minutes + seconds
