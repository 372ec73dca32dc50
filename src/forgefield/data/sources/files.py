"""From the paths and globs of a config to the list of existing files."""

import difflib
import glob
from collections.abc import Sequence
from pathlib import Path

from forgefield.errors import UserError


def find_files(source: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that a path, a glob or a list of either names; a glob's in alphabetical order.

    Raises:
        UserError: a file is missing, empty or a directory, a glob matches nothing, or one file is named twice.
    """
    entries = [source] if isinstance(source, str | Path) else source
    files = [file for entry in entries for file in _expand(Path(entry).expanduser())]
    if not files:
        raise UserError("the dataset names no source file; set `source` to a path, a glob or a list of them")
    seen: set[Path] = set()
    for file in files:
        if file.resolve() in seen:
            raise UserError(f"{file}: named twice in one source; its frames would count twice")
        seen.add(file.resolve())
    return files


def _expand(path: Path) -> list[Path]:
    if not path.exists() and glob.has_magic(str(path)):
        files = [Path(name) for name in sorted(glob.glob(str(path), recursive=True)) if Path(name).is_file()]
        if not files:
            raise UserError(f"{path}: no file matches")
    else:
        files = [path]
    for file in files:
        _check(file)
    return files


def _check(file: Path) -> None:
    if not file.exists():
        siblings = [p.name for p in file.parent.iterdir()] if file.parent.is_dir() else []
        nearest = difflib.get_close_matches(file.name, siblings, n=1)
        hint = f"; did you mean {file.parent / nearest[0]}?" if nearest else f" (looked from {Path.cwd()})"
        raise UserError(f"{file}: no such file{hint}")
    if not file.is_file():
        raise UserError(f"{file}: a directory; name a file or a glob such as {file}/*.xyz")
    if file.stat().st_size == 0:
        raise UserError(f"{file}: empty file")
