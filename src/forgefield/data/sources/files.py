"""From the paths and globs of a config to the list of existing files, and directories that are one source."""

import difflib
import glob
from collections.abc import Sequence
from pathlib import Path

from forgefield.config.dataset import Download
from forgefield.data.sources.directories import directory_source, sources_in
from forgefield.data.sources.downloads import fetch
from forgefield.errors import UserError
from forgefield.files import sha256_of

Entry = str | Path | Download


def find_files(source: Entry | Sequence[Entry]) -> list[Path]:
    """The files that a path, a glob, a download or a list of these names; a glob's in alphabetical order.

    A directory stands for the files in it, but a run of VASP for its vasprun.xml, or else its OUTCAR, and a system of
    DeePMD for itself.

    Raises:
        UserError: a file is missing, empty or, in a directory, of no known format, a glob matches nothing, one file is
            named twice, or the sha256 of a download is not listed or another.
        MachineError: a file cannot be loaded from the internet.
    """
    entries = [source] if isinstance(source, Entry) else source
    files = [file for entry in entries for file in _files_of(entry)]
    if not files:
        raise UserError("the dataset names no source file; set `source` to a path, a glob or a list of them")
    seen: set[Path] = set()
    for file in files:
        if file.resolve() in seen:
            raise UserError(f"{file}: named twice; its frames would count twice, so name it once")
        seen.add(file.resolve())
    return files


def _files_of(entry: Entry) -> list[Path]:
    return [_downloaded(entry)] if isinstance(entry, Download) else _expand(Path(entry).expanduser())


def _downloaded(entry: Download) -> Path:
    path = fetch(entry.url, entry.sha256)
    if entry.sha256 is None:
        raise UserError(
            f"{entry.url}: loaded, but its sha256 is not listed; if you trust {path}, write"
            f" `source: {{url: {entry.url}, sha256: {sha256_of(path)}}}`"
        )
    _check(path)
    return path


def _expand(path: Path) -> list[Path]:
    if not path.exists() and glob.has_magic(str(path)):
        found = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
        files = [source for name in found if (source := name if name.is_file() else directory_source(name))]
        if not files:
            raise UserError(f"{path}: no file matches")
    else:
        files = sources_in(path) if path.is_dir() else [path]
    for file in files:
        _check(file)
    return files


def _check(file: Path) -> None:
    if not file.exists():
        siblings = [p.name for p in file.parent.iterdir()] if file.parent.is_dir() else []
        nearest = difflib.get_close_matches(file.name, siblings, n=1)
        hint = f"; did you mean {file.parent / nearest[0]}?" if nearest else f" (looked from {Path.cwd()})"
        raise UserError(f"{file}: no such file{hint}")
    if file.is_file() and file.stat().st_size == 0:
        raise UserError(f"{file}: empty file")
