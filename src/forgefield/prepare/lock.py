"""One command at a time works on a run."""

import errno
import fcntl
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from forgefield.errors import UserError
from forgefield.files import make_directory, remove_leftovers

LOCK = ".lock"
# seconds that the processes of a command that was killed may take to end
PATIENCE, POLL_SECONDS = 5.0, 0.2
NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


@contextmanager
def only_one(output: Path, *, wait: bool = False) -> Iterator[int]:
    """Keep other commands off a run's directory, which is made.

    The lock ends with this process and those that inherit its descriptor, which is what this yields: however they end,
    and not before the last of them has.

    Args:
        output: the directory.
        wait: until another command has left it, however long that takes.

    Raises:
        UserError: another command has it, or the directory cannot be made.
    """
    make_directory(output, "output_path")
    lock = os.open(output / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _acquire(lock, output, wait)
        with suppress(OSError):  # a full disk; it is only for messages
            os.ftruncate(lock, 0)
            os.write(lock, f"process {os.getpid()} on {socket.gethostname()}".encode())
        remove_leftovers(output)
        yield lock
    finally:
        os.close(lock)


def holder(output: Path) -> str | None:
    """Which process works on a run; None where none does."""
    try:
        lock = os.open(output / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        return None if _acquired(lock, fcntl.LOCK_SH) else _who(output)
    finally:
        os.close(lock)


def _acquire(lock: int, output: Path, wait: bool) -> None:
    deadline, said = time.monotonic() + PATIENCE, False
    while not _acquired(lock, fcntl.LOCK_EX):
        if not wait and time.monotonic() > deadline:
            raise UserError(
                f"{output}: another command ({_who(output)}) is working on this run; wait until it ends, or choose "
                "another output_path"
            )
        if wait and not said:
            print(f"{output}: waiting for {_who(output)}, which is working on this run", file=sys.stderr, flush=True)
            said = True
        time.sleep(POLL_SECONDS)


def _acquired(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        print("the file system of this run has no locks; start nothing else on it", file=sys.stderr, flush=True)
    return True


def _who(output: Path) -> str:
    return (output / LOCK).read_text() or "one that has just started"
