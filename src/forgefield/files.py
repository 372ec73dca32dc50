"""Writing files so that a reader never sees half of one, and telling files apart."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forgefield.errors import UserError

# what a write into an open file can end with; such an error does not say which file it was
WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EIO}
# names that atomic_file and atomic_directory give, and no others: a user may have hidden files of his own there
LEFTOVER = re.compile(r"\..+\.\d+\.(tmp|old)")


def make_directory(path: Path, key: str) -> None:
    """Make a directory that the user has named by ``key``, unless it is there.

    Raises:
        UserError: a file is in the way, or the place is not to be written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in WRITE_ERRORS:
            raise
        raise UserError(f"{key}: {path} cannot be made a directory ({error.strerror}); choose another place") from None


def files_in(path: Path) -> list[Path]:
    """A file itself, or all files in a directory, however deep, in the order of their names."""
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a directory."""
    return sum(file.stat().st_size for file in files_in(path))


def sha256_of(path: Path | str) -> str:
    """The hexadecimal sha256 of a file's bytes; for a directory that of the names and sha256 of the files in it."""
    path = Path(path)
    if path.is_dir():
        lines = [f"{sha256_of(file)}  {file.relative_to(path).as_posix()}\n" for file in files_in(path)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_file(path: Path | str, *, synced: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` on success, remove it on any failure.

    It need not be ``synced`` to disk where something else is that it can be made from again.
    """
    path = Path(path)
    _make_parents(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        if synced:
            sync(temporary)
        os.replace(temporary, path)
        if synced:
            sync(path.parent)
    except OSError as error:
        _name(error, path, temporary)
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path | str) -> Iterator[Path]:
    """Yield a new temporary directory; it replaces ``path`` whole on success and is removed on any failure."""
    path = Path(path)
    _make_parents(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.rglob("*"):
            sync(file)
        sync(temporary)
        _replace_directory(temporary, path)
        sync(path.parent)
    except OSError as error:
        _name(error, path, temporary)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(directory: Path) -> None:
    """Remove what processes that were killed have left half written, or half removed, anywhere in a directory.

    Nobody else may be writing there.
    """
    for path in sorted(path for path in directory.rglob(".*") if LEFTOVER.fullmatch(path.name)):
        if path.is_dir():
            shutil.rmtree(path)
        else:  # it may have gone with its directory
            path.unlink(missing_ok=True)


def _make_parents(path: Path) -> None:
    """Make the directories above ``path``; new ones are on disk before what will be in them."""
    new = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    for parent in new:
        sync(parent.parent)


def _name(error: OSError, path: Path, temporary: Path) -> None:
    """Give an error of writing the path that the user knows, where it names none or the temporary one."""
    unnamed = error.filename is None and error.errno in WRITE_ERRORS
    if unnamed or Path(str(error.filename)).is_relative_to(temporary):
        error.filename = str(path)


def _replace_directory(temporary: Path, path: Path) -> None:
    """Rename over ``path``. A directory cannot be renamed over a full one, so the old one steps aside first."""
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    if path.exists():
        os.replace(path, old)
    os.replace(temporary, path)
    shutil.rmtree(old, ignore_errors=True)


def sync(path: Path) -> None:
    """Ask the operating system to put a file or directory on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path | str, content: Any) -> None:
    """Write indented JSON atomically; NaN and infinity are refused."""
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")


class DamagedFileError(UserError, ValueError):
    """A file that is missing, or not what its name says."""


def read_json(path: Path | str, remedy: str = "remove it and run again what wrote it") -> dict[str, Any]:
    """The object in a JSON file; ``remedy`` is what messages say that a user can do.

    Raises:
        DamagedFileError: there is none, it is not JSON, or holds no object.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DamagedFileError(f"{path}: no such file; {remedy}") from None
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path}: not JSON ({error}); {remedy}") from None
    if not isinstance(content, dict):
        raise DamagedFileError(f"{path}: holds a {type(content).__name__}, expected an object with keys; {remedy}")
    return content
