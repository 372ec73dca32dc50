"""Compressed files, read as the files inside."""

import bz2
import gzip
import lzma
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import IO

from forgefield.errors import MachineError, UserError

OPENERS = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\x00", ".bz2": b"BZh"}
UNREADABLE = (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)


def plain_name(path: Path) -> str:
    """The name of a file without the ending of a compression."""
    return path.stem if path.suffix in OPENERS else path.name


def plain_files(path: Path) -> Iterator[tuple[str, Path]]:
    """Each file in a compressed one: its name for messages, and a plain copy that lives until the next is asked for.

    A copy, because most readers seek in their files, which compressed ones do from their beginning. It is on disk, so
    that memory does not grow. A file that is not compressed is itself.

    Raises:
        UserError: it cannot be read or decompressed, nothing is in it, or its name does not say that it is compressed.
    """
    begin = b"" if path.is_dir() else _beginning(path)
    if path.suffix not in OPENERS and path.suffix != ".zip":
        _require_plain(path, begin)
        yield str(path), path
        return
    with tempfile.TemporaryDirectory() as folder:
        members = _zipped(path) if path.suffix == ".zip" else iter([(None, path.stem, OPENERS[path.suffix])])
        for member, name, opener in members:
            plain = Path(folder) / name
            _copy(path, opener, plain)
            yield f"{path}/{member}" if member else str(path), plain
            plain.unlink()


def _beginning(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(6)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def _require_plain(path: Path, begin: bytes) -> None:
    if ending := next((ending for ending, magic in MAGIC.items() if begin.startswith(magic)), None):
        raise UserError(f"{path}: compressed, but not named so; rename it to {path.name}{ending}")


def _zipped(path: Path) -> Iterator[tuple[str, str, object]]:
    """The files in a zip archive in alphabetical order, but for the hidden ones that file managers add."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(entry.filename for entry in archive.infolist() if not entry.is_dir())
    except UNREADABLE as error:
        raise _damaged(path, error) from None
    names = [name for name in names if not _hidden(name)]
    if not names:
        raise UserError(f"{path}: no files in it")
    for name in names:
        yield name, PurePosixPath(name).name, lambda source, mode, name=name: _open_member(source, name)


def _hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)


def _open_member(path: Path, name: str) -> IO[bytes]:
    return zipfile.ZipFile(path).open(name)


def _copy(path: Path, opener, plain: Path) -> None:
    try:
        source = opener(path, "rb")
    except UNREADABLE as error:
        raise _damaged(path, error) from None
    with closing(source), open(plain, "wb") as target:
        try:
            shutil.copyfileobj(source, target, 1 << 20)
        except UNREADABLE as error:
            if getattr(error, "errno", None):  # decompression has none, a full disk has
                raise MachineError(f"{path}: cannot be decompressed to {plain.parent} ({error}); set TMPDIR") from None
            raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> UserError:
    return UserError(f"{path}: cannot be decompressed ({' '.join(str(error).split())}); get the file again")
