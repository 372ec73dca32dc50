"""A directory in which process 0 writes and all processes read."""

import socket
import time
import uuid
from contextlib import suppress
from pathlib import Path

from forgefield.data.processes import Processes
from forgefield.errors import UserError
from forgefield.files import make_directory

TOKEN, OLD = ".shared-", 3600.0  # seconds, after which nobody looks for one any more
PATIENCE = 10.0  # seconds in which a file system over a network shows what another machine has written


def require_shared(directory: Path, processes: Processes) -> None:
    """Make the directory, and make sure that all processes have the same one.

    Raises:
        UserError: a process does not see what process 0 has written into it; the same on all processes.
    """
    if processes.count == 1:
        return
    token, is_new = directory / f"{TOKEN}{uuid.uuid4().hex}", not directory.exists()
    if processes.index == 0:
        make_directory(directory, "output_path")
        _remove_old(directory)
        token.touch()
    name = processes.broadcast(token.name)
    everyone = processes.exchange((_appears(directory / name), socket.gethostname(), str(directory.resolve())))
    if processes.index == 0:
        token.unlink()
    lost = [(i, host, path) for i, (sees, host, path) in enumerate(everyone) if not sees]
    if lost and processes.index == 0 and is_new:
        directory.rmdir()
    if lost:
        index, host, path = lost[0]
        raise UserError(
            f"output_path: process {index} on {host} does not see in {path} what process 0 on {everyone[0][1]} wrote "
            f"into {everyone[0][2]}; choose a directory on a file system that all nodes share"
        )


def _remove_old(directory: Path) -> None:
    """Remove what processes that were killed have left; others may just be starting here, before they have the lock."""
    for path in directory.glob(f"{TOKEN}*"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > OLD:
                path.unlink()


def _appears(path: Path) -> bool:
    end = time.monotonic() + PATIENCE
    while not path.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
