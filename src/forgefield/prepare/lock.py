"""One command at a time works on a run."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from forgefield.errors import UserError
from forgefield.files import make_directory

LOCK = ".lock"


@contextmanager
def only_one(output: Path) -> Iterator[None]:
    """Keep other commands off a run's directory, which is made; the lock ends with the process, however that ends.

    Raises:
        UserError: another command has it, or the directory cannot be made.
    """
    make_directory(output, "output_path")
    lock = FileLock(output / LOCK, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(
            f"{output}: another command is working on this run; wait until it ends, or choose another output_path"
        ) from None
    except NotImplementedError:  # of a file system
        print(f"{output}: its file system has no locks; start nothing else on this run", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        lock.release()
