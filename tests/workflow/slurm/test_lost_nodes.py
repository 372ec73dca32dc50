"""A node of a training is lost; nodes of this Slurm differ in the name space of their processes."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

NODE, RUN = "n2", "ranks"
WEIGHTS = Path("results/runs", RUN, "model/weights.safetensors")
RUNS = {RUN: {"devices": 1, "n_nodes": 2, "parallelism": "mpi"}}
EPOCHS = 400
# in which Slurm notices, by its SlurmdTimeout, and in which a node comes back
PATIENCE = 180.0


def scontrol(*words):
    return subprocess.run(["scontrol", *words], capture_output=True, text=True, check=True, timeout=60).stdout


def state():
    found = subprocess.run(["sinfo", "-h", "-N", "-n", NODE, "-p", "debug", "-o", "%T"], capture_output=True, text=True)
    return found.stdout.strip()


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, state()
        time.sleep(0.5)


def daemon():
    """The process ID of the node's slurmd."""
    path = re.search(r"SlurmdPidFile\s*= (\S+)", scontrol("show", "config"))[1]
    return int(Path(path.replace("%n", NODE)).read_text())


def processes():
    """All that runs on the node."""
    space = os.readlink(f"/proc/{daemon()}/ns/uts")
    if space == os.readlink("/proc/self/ns/uts"):
        pytest.skip("this Slurm's nodes cannot be told apart (SLURMTEST_UTS=0)")
    for path in Path("/proc").glob("[0-9]*/ns/uts"):
        with suppress(OSError):
            if os.readlink(path) == space:
                yield int(path.parts[2])


def send(sent):
    for process in list(processes()):
        with suppress(ProcessLookupError):
            os.kill(process, sent)


def lose_power():
    send(signal.SIGKILL)


def answer_no_more():
    """Connections stay open, as where a node hangs or its network is gone."""
    send(signal.SIGSTOP)


def be_set_down():
    scontrol("update", f"NodeName={NODE}", "State=DOWN", "Reason=test")


@pytest.fixture
def bring_back():
    """Starts the node again, as its administrator would; done in any case at the end of the test."""

    def start():
        with suppress(OSError):
            send(signal.SIGKILL)
        script = f"hostname {NODE}; exec slurmd -N {NODE}"
        nowhere = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["unshare", "--uts", "sh", "-c", script], check=True, start_new_session=True, **nowhere)
        with suppress(subprocess.CalledProcessError):  # as it may be up by itself
            scontrol("update", f"NodeName={NODE}", "State=RESUME")
        wait_for(lambda: state() in ("idle", "mixed", "allocated"))

    yield start
    if state() not in ("idle", "mixed", "allocated"):
        start()


@pytest.fixture(scope="module")
def straight(prepared, clone_of):
    """The weights of the same training without a break, on this machine."""
    clone = clone_of(prepared, runs=RUNS, training=prepared.training | {"epochs": EPOCHS})
    command = [sys.executable, "-m", "snakemake", "--cores", "2", str(WEIGHTS)]
    done = subprocess.run(command, cwd=clone.path, env=clone.environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return (clone.path / WEIGHTS).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("lose", [be_set_down, lose_power, answer_no_more])
def test_a_training_that_loses_a_node_continues_to_the_same_bits(prepared, clone_of, straight, bring_back, lose):
    clone = clone_of(prepared, runs=RUNS, training=prepared.training | {"epochs": EPOCHS})
    process = clone.start("--", f"results/runs/{RUN}/metrics.json")
    clone.wait_for(lambda: len(clone.history(RUN)) > 20, process)
    lose()
    if lose is not be_set_down:  # after which its daemon, which is well, brings it back at once
        wait_for(lambda: state().startswith("down"))
        bring_back()
    assert process.wait(timeout=600) == 0, clone.written()
    assert [int(line.split(",")[0]) for line in clone.history(RUN)[1:]] == list(range(1, EPOCHS + 1))
    assert (clone.path / WEIGHTS).read_bytes() == straight
    clone.wait_until_all_ended()
