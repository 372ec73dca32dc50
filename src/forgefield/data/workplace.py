"""The directory beside a dataset's results in which they are made, and what killed conversions have left of theirs."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

LOCK = ".lock"


@contextmanager
def workplace(output: Path) -> Iterator[Path]:
    """A directory of one's own beside ``output``, until the end; those that ended processes have left are removed."""
    output.parent.mkdir(parents=True, exist_ok=True)
    for left in output.parent.glob(f".{output.name}.*/{LOCK}"):
        if lock := _locked(left):
            shutil.rmtree(left.parent, ignore_errors=True)
            lock.release()
    lock = None
    try:
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as work:
            lock = _locked(Path(work) / LOCK)  # which ends with the process, however that ends
            yield Path(work)
    finally:
        if lock:
            lock.release()


def _locked(path: Path) -> FileLock | None:
    """The lock, unless another process has it or the file system has none."""
    lock = FileLock(path, blocking=False)
    try:
        lock.acquire()
    except (OSError, NotImplementedError):  # another has it, or the file system or the directory gives none
        return None
    return lock
