"""A killed training continues when snakemake is called again."""

import csv
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

EPOCHS = 100
TRAINING = ("--config", f"training={{epochs: {EPOCHS}}}")


def rows(history: Path) -> list[dict[str, str]]:
    with open(history) as file:
        return list(csv.DictReader(file))


def kill_in_training(workspace, *, after: int) -> list[dict[str, str]]:
    """Kill snakemake and all its processes once the history has some epochs; what it had then."""
    history = workspace.results / "runs" / "water-tiny-jax" / "history.csv"
    process = subprocess.Popen(
        workspace.command(*TRAINING),
        env=workspace.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while not history.exists() or len(rows(history)) < after:
            assert process.poll() is None, "snakemake ended before it could be killed"
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return rows(history)


def test_a_killed_training_is_continued(finished_copy):
    run = finished_copy.results / "runs" / "water-tiny-jax"
    shutil.rmtree(run)
    killed = kill_in_training(finished_copy, after=5)
    assert len(killed) < EPOCHS

    assert finished_copy.run("--unlock", *TRAINING).returncode == 0
    done = finished_copy.run(*TRAINING)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "continues after epoch" in (finished_copy.results / "logs" / "train" / "water-tiny-jax.log").read_text()
    history = rows(run / "history.csv")
    assert [int(row["epoch"]) for row in history] == list(range(1, EPOCHS + 1))
    assert history[: len(killed)] == killed
    assert finished_copy.jobs(*TRAINING) == set()
