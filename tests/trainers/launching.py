"""Starts programs as one process, as MPI ranks or as processes of ``jax.distributed``."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TRAINING = Path(__file__).parent / "train_pair_potential.py"

# columns of the history that no two trainings share
TIMES = ("seconds", "data_wait_ms_per_step")


def train(output, words=(), **together):
    """Train the pair potential and return what came out: parameters, columns of the history, metrics of validation."""
    codes = [process.wait() for process in start([TRAINING, output, *words], **together)]
    assert set(codes) == {0}
    history = np.genfromtxt(output / "history.csv", delimiter=",", names=True)
    columns = {name: history[name] for name in history.dtype.names if name not in TIMES}
    return load_file(output / "params.safetensors") | columns | json.loads((output / "metrics.json").read_text())


def ended(words, **together):
    """The exit codes of the processes. Those that wait for one that was killed are killed, too."""
    started = start(words, **together)
    while all(process.poll() is None for process in started):
        time.sleep(0.05)
    if any(process.poll() not in (None, 75) for process in started):
        for process in started:
            process.kill()
    return [process.wait() for process in started]


def start(words, *, ranks=None, processes=None, **settings):
    """The started processes: one, ``mpirun`` for MPI ranks, or several of JAX; all share compiled functions."""
    environment = os.environ | MPI | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, *map(str, words)]
    if ranks:
        mpirun = [str(Path(sys.executable).parent / "mpirun"), "--oversubscribe", "-n", str(ranks)]
        return [subprocess.Popen([*mpirun, *command], env=environment, **settings)]
    if not processes:
        return [subprocess.Popen(command, env=environment, **settings)]
    together = ["--coordinator", f"localhost:{free_port()}", "--processes", str(processes)]
    return [
        subprocess.Popen([*command, *together, "--index", str(i)], env=environment, **settings)
        for i in range(processes)
    ]


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]
