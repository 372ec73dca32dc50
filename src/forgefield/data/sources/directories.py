"""What a directory stands for: one source, or the files in it."""

from pathlib import Path

from forgefield.data.sources.archives import OPENERS, plain_name
from forgefield.data.sources.deepmd import is_system
from forgefield.data.sources.formats import find_format
from forgefield.errors import UserError

VASP = ("vasprun.xml", "OUTCAR")
"""What to read of a run of VASP; the first is the more exact."""


def directory_source(path: Path) -> Path | None:
    """The one source that a directory is: a system of DeePMD or a run of VASP; None where it is neither."""
    if is_system(path):
        return path
    names = [path / f"{name}{ending}" for name in VASP for ending in ("", *OPENERS)]
    return next((file for file in names if file.is_file()), None)


def sources_in(path: Path) -> list[Path]:
    """The sources in a directory, however deep, in the order of their names.

    Raises:
        UserError: nothing is in it, or a file of no known format, unless a run or system that it is in is a source.
    """
    if source := directory_source(path):
        return [source]
    sources = []
    for entry in sorted(entry for entry in path.iterdir() if not entry.name.startswith(".")):
        if entry.is_dir():
            sources += sources_in(entry)
        else:
            sources.append(_known(entry, path))
    if not sources:
        raise UserError(f"{path}: no files in this directory")
    return sources


def _known(file: Path, directory: Path) -> Path:
    """A file that some reader is for; compressed ones are trusted, as only decompressing them would tell."""
    if plain_name(file) == file.name and file.suffix != ".zip":
        try:
            find_format(file)
        except UserError as error:
            raise UserError(f"{error}, or name the files to read by a glob such as {directory}/*.xyz") from None
    return file
