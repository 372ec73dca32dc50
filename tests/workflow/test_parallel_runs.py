"""Runs that differ in how their devices are used only: one workflow starts them all, and they end with one answer."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUNS = {
    "one": {"parallelism": "single"},
    "ranks": {"parallelism": "mpi", "devices": 2},
    "devices": {"parallelism": "jax", "devices": 2},
    "nodes": {"parallelism": "jax", "n_nodes": 2},
    "torch": {"backend": "fabric", "devices": 2, "training": {"batching": "fixed"}},
}
# PyTorch rounds otherwise than JAX in every step
TOLERANCE = {"torch": 1e-8}
PROCESSES = {"devices": 1}
SEVERAL = ["ranks", "nodes", "torch"]
LIMIT = 10.0


@pytest.fixture(scope="module")
def trained(new_workspace):
    """A workspace in which all runs are done."""
    workspace = new_workspace()
    file = workspace.path / "config" / "config.yaml"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"runs": RUNS}))
    done = workspace.run()
    assert done.returncode == 0, done.stdout + done.stderr
    return workspace


@pytest.mark.parametrize("run", [name for name in RUNS if name != "one"])
def test_every_method_gives_the_same_metrics(trained, run):
    one, other = (json.loads((trained.results / "runs" / name / "metrics.json").read_text()) for name in ("one", run))
    numbers, others = (dict(_numbers(content)) for content in (one, other))
    assert others == pytest.approx(numbers, rel=TOLERANCE.get(run, 1e-12), abs=1e-12)
    assert len(numbers) > 10
    log = (trained.results / "logs" / "evaluate" / f"{run}.log").read_text()
    assert f"test: 4 structures on 2 devices of {PROCESSES.get(run, 2)} process" in log
    assert "\x1b" not in log  # for mpirun, rank 0 has a terminal


def _numbers(content, path=()):
    if isinstance(content, dict | list):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            yield from _numbers(value, (*path, key))
    elif isinstance(content, float | int):
        yield path, content


class Training:
    """``forgefield train`` of one run with other settings, in a directory of its own."""

    def __init__(self, workspace, run, output, *settings):
        self.output = output
        words = ["--config", "config/config.yaml", "--run", run, "--output", output]
        changes = [word for setting in settings for word in ("--set", setting)]
        self.process = subprocess.Popen(
            [Path(sys.executable).parent / "forgefield", "train", *words, *changes],
            cwd=workspace.path,
            stderr=subprocess.PIPE,
            text=True,
        )

    def processes(self):
        """Process IDs of everything that trains into the directory, by command line."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode().split("\0")
            except OSError:
                continue
            if str(self.output) in words:
                found[int(path.parent.name)] = words
        return found

    def wait_for(self, epochs):
        history = self.output / "history.csv"
        while not history.exists() or len(history.read_text().splitlines()) <= epochs:
            assert self.process.poll() is None, self.process.stderr.read()
            time.sleep(0.05)

    def wait_until_all_ended(self):
        deadline = time.monotonic() + LIMIT
        while self.processes():
            assert time.monotonic() < deadline, self.processes()
            time.sleep(0.1)


@pytest.mark.parametrize("run", SEVERAL)
def test_a_mistake_ends_in_one_line(trained, tmp_path, run):
    training = Training(trained, run, tmp_path / "run", "training.lr=1e300")
    _, written = training.process.communicate()
    assert training.process.returncode == 2
    (error,) = [line for line in written.splitlines() if "error" in line or "Traceback" in line]
    assert re.match(
        r"error: epoch 1, step 2: the loss or its gradient is not finite, in \S+, frames [\d, ]+; check", error
    )
    training.wait_until_all_ended()
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.parametrize("run", SEVERAL)
def test_a_killed_process_ends_all_and_the_run_continues(trained, tmp_path, run):
    longer = "training.epochs=200"
    training = Training(trained, run, tmp_path / "killed", longer)
    training.wait_for(epochs=3)
    workers = [pid for pid, words in training.processes().items() if pid != training.process.pid and "-n" not in words]
    os.kill(workers[-1], signal.SIGKILL)
    start = time.monotonic()
    _, written = training.process.communicate()
    assert time.monotonic() - start < LIMIT
    assert training.process.returncode == 3
    assert "Traceback" not in written
    (error,) = [line for line in written.splitlines() if line.startswith("error: ")]
    assert error.endswith("run again: it continues from the last checkpoint")
    training.wait_until_all_ended()

    continued, straight = (
        Training(trained, run, tmp_path / "killed", longer),
        Training(trained, run, tmp_path / "straight", longer),
    )
    assert "continues after epoch" in continued.process.communicate()[1]
    straight.process.communicate()
    weights = [(t.output / "model" / "weights.safetensors").read_bytes() for t in (continued, straight)]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("run", SEVERAL)
def test_processes_end_with_the_one_that_started_them(trained, tmp_path, run):
    training = Training(trained, run, tmp_path / "run", "training.epochs=100000")
    training.wait_for(epochs=1)
    training.process.kill()
    training.process.communicate()
    training.wait_until_all_ended()
