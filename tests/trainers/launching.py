"""Starts programs as one process, as MPI ranks or as processes of ``jax.distributed``."""

import os
import socket
import subprocess
import sys
from pathlib import Path

MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TRAINING = Path(__file__).parent / "train_pair_potential.py"


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
