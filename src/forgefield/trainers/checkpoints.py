"""Checkpoints in safe formats: arrays as safetensors, the rest as JSON; visible only when complete."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save

from forgefield.config.contents import Record, checked
from forgefield.errors import MachineError, UserError
from forgefield.files import DamagedFileError, atomic_directory, read_json, sha256_of, sync, write_json
from forgefield.trainers.record import Place, SavedRecord
from forgefield.trainers.say import say

FORMAT = 2
KEEP = 2
ARRAYS, CONTENT, MARK = "arrays.safetensors", "content.json", "complete.json"
DAMAGED = "damaged_"
REMEDY = "remove this checkpoint"


class Mark(Record):
    """What is written last, and makes a checkpoint complete."""

    forgefield_format: int
    """the version of the format"""

    sha256: dict[str, str]
    """the checksum of each file"""


class Content(Record):
    """What the JSON content must hold."""

    fingerprint: dict[str, Any]
    """settings and checksums of the data, which decide the result"""

    notes: dict[str, Any]
    """settings and versions that do not"""

    complete: bool
    """whether nothing is left to be trained"""

    record: SavedRecord
    """how far the training is"""


class Checkpoint(NamedTuple):
    """Where it is, its arrays by name, and JSON content."""

    path: Path
    arrays: dict[str, np.ndarray]
    content: dict[str, Any]


def save_checkpoint(
    directory: Path, place: Place, arrays: Mapping[str, np.ndarray], content: dict[str, Any], keep: int = KEEP
) -> Path:
    """Write the checkpoint of a place, then remove all but the newest ``keep``.

    Args:
        directory: of all checkpoints of a training.
        place: how far the training is.
        arrays: by name, in C order.
        content: see :class:`Content`; must not hold NaN.
        keep: how many checkpoints stay.
    """
    path = directory / place.name
    with atomic_directory(path) as temporary:
        # not save_file, whose files only their owner can read, and which has errors of its own for a full disk
        (temporary / ARRAYS).write_bytes(save(dict(arrays)))
        sync(temporary / ARRAYS)
        write_json(temporary / CONTENT, content)
        digests = {name: sha256_of(temporary / name) for name in (ARRAYS, CONTENT)}
        write_json(temporary / MARK, {"forgefield_format": FORMAT, "sha256": digests})
    for old in saved_checkpoints(directory)[keep:]:
        hidden = old.rename(directory / f".{old.name}.{os.getpid()}.old")
        shutil.rmtree(hidden)
    return path


def saved_checkpoints(directory: Path) -> list[Path]:
    """Complete checkpoints, newest first."""
    if not directory.is_dir():
        return []
    places = {path: Place.of(path) for path in directory.iterdir()}
    return sorted((path for path, place in places.items() if place), key=places.__getitem__, reverse=True)


def newest_checkpoint(directory: Path) -> tuple[Path, dict[str, Any]] | None:
    """Path and content of the newest undamaged checkpoint, or None where there is none.

    Damaged ones that are newer are said and renamed, so that they do not count among those to be kept.

    Raises:
        UserError: there are checkpoints and all are damaged, or the newest is of another format.
        MachineError: one cannot be read, though it may be whole.
    """
    damaged: list[Path] = []
    for path in saved_checkpoints(directory):
        try:
            content = read_content(path)
        except DamagedFileError as error:
            say(f"{path}: damaged checkpoint passed over ({error})")
            damaged.append(path)
            continue
        for other in damaged:
            aside = directory / f"{DAMAGED}{other.name}"
            shutil.rmtree(aside, ignore_errors=True)
            say(f"continues from {path}, which is older; {other.rename(aside)} can be removed")
        return path, content
    if damaged:
        raise UserError(f"{directory}: every checkpoint is damaged; remove the folder to start again")
    return None


def read_content(path: Path, *, quick: bool = False) -> dict[str, Any]:
    """The JSON content of a checkpoint, all of whose files have the checksums that were noted last.

    Args:
        path: the checkpoint.
        quick: only see that the arrays are there and of the length that their file says, without reading them.

    Raises:
        DamagedFileError: something is missing, or not what was written.
        UserError: it is of another format.
        MachineError: it cannot be read, as where a disk fails or a server does not answer.
    """
    try:
        return _checked_content(path, quick)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DamagedFileError(f"{error.filename}: {_in_words(error)}; {REMEDY}") from None
    except OSError as error:
        raise MachineError(f"{error.filename or path}: {_in_words(error)}; repair this and run again") from None


def _checked_content(path: Path, quick: bool) -> dict[str, Any]:
    mark = read_json(path / MARK, REMEDY)
    if mark.get("forgefield_format", FORMAT) != FORMAT:
        raise UserError(
            f"{path}: checkpoint format {mark['forgefield_format']}, expected {FORMAT}; "
            f"remove {path.parent} to start again"
        )
    digests = checked(path / MARK, mark, Mark, REMEDY).sha256
    if quick and (reason := damage_of(path / ARRAYS)):
        raise DamagedFileError(f"{path / ARRAYS}: {reason}; {REMEDY}")
    for name in (CONTENT,) if quick else (ARRAYS, CONTENT):
        if sha256_of(path / name) != digests.get(name):
            raise DamagedFileError(f"{path / name}: its sha256 is another than {MARK} says; {REMEDY}")
    content = read_json(path / CONTENT, REMEDY)
    checked(path / CONTENT, content, Content, REMEDY)
    return content


def damage_of(path: Path) -> str | None:
    """Why a file of arrays is not there, or not as long as its beginning says; None where it is."""
    try:
        with open(path, "rb"), safe_open(path, "numpy"):
            return None
    except OSError as error:
        return _in_words(error)
    except SafetensorError as error:
        return f"damaged ({error})"


def _in_words(error: OSError) -> str:
    return "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"


def load_newest(directory: Path) -> Checkpoint | None:
    """What :func:`newest_checkpoint` finds, with its arrays."""
    found = newest_checkpoint(directory)
    return found and Checkpoint(found[0], load_file(found[0] / ARRAYS), found[1])
