"""Checkpoints in safe formats: arrays as safetensors, the rest as JSON; visible only when complete."""

import json
import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file

from forgefield.config.contents import Record, checked
from forgefield.errors import UserError
from forgefield.files import DamagedFileError, atomic_directory, read_json, sha256_of, write_json
from forgefield.trainers.history import SavedRecord

FORMAT = 1
KEEP = 2
ARRAYS, CONTENT = "arrays.safetensors", "content.json"
REMEDY = "remove this checkpoint"


class Content(Record):
    """What the JSON content must hold."""

    forgefield_format: int
    """the version of the format"""

    sha256: str
    """the checksum of the arrays"""

    fingerprint: dict[str, Any]
    """settings and checksums of the data"""

    record: SavedRecord
    """how far the training is"""


class Checkpoint(NamedTuple):
    """Where it is, its arrays by name, and JSON content."""

    path: Path
    arrays: dict[str, np.ndarray]
    content: dict[str, Any]


def save_checkpoint(directory: Path, epoch: int, arrays: Mapping[str, np.ndarray], content: dict[str, Any]) -> Path:
    """Write ``directory/epoch_NNNNNN``, then remove all but the newest two.

    Args:
        directory: of all checkpoints of a training.
        epoch: finished epochs.
        arrays: by name, in C order.
        content: JSON content with ``fingerprint`` and ``record``; must not hold NaN.
    """
    path = directory / f"epoch_{epoch:06d}"
    with atomic_directory(path) as temporary:
        save_file(dict(arrays), temporary / ARRAYS)
        digest = sha256_of(temporary / ARRAYS)
        write_json(temporary / CONTENT, {"forgefield_format": FORMAT, "sha256": digest, **content})
    for old in saved_checkpoints(directory)[KEEP:]:
        shutil.rmtree(old)
    return path


def load_newest(directory: Path, fingerprint: Mapping[str, Any]) -> Checkpoint | None:
    """The newest undamaged checkpoint, or None where there is none.

    Args:
        directory: of all checkpoints of a training.
        fingerprint: must equal the one in the content.

    Raises:
        UserError: there are checkpoints and all are damaged, or the newest is of other settings or data.
    """
    if not saved_checkpoints(directory):
        return None
    path, content = _newest_undamaged(directory)
    for key, (saved, present) in changed_keys(content["fingerprint"], fingerprint).items():
        raise UserError(
            f"{path}: {key} was {saved} and is now {present}; set it back to continue, "
            f"or remove {directory} to start again"
        )
    return Checkpoint(path, load_file(path / ARRAYS), content)


def set_aside_if_changed(directory: Path, aside: Path, fingerprint: Mapping[str, Any]) -> str | None:
    """Move all checkpoints to ``aside``, replacing what is there, if the newest has another fingerprint.

    Returns:
        What changed, in words; None where nothing did and nothing was moved.
    """
    if not saved_checkpoints(directory):
        return None
    _, content = _newest_undamaged(directory)
    changed = changed_keys(content["fingerprint"], fingerprint)
    if not changed:
        return None
    if aside.exists():
        shutil.rmtree(aside)
    directory.rename(aside)
    return ", ".join(_in_words(key, *values) for key, values in changed.items())


def _in_words(key: str, saved: Any, present: Any) -> str:
    short = all(len(str(value)) < 20 for value in (saved, present))
    return f"{key} was {saved} and is now {present}" if short else f"{key} changed"


def _newest_undamaged(directory: Path) -> tuple[Path, dict[str, Any]]:
    """Path and content; damaged checkpoints are passed over with a warning."""
    for path in saved_checkpoints(directory):
        try:
            return path, _content(path)
        except (OSError, DamagedFileError) as error:
            warnings.warn(f"{path}: damaged checkpoint passed over ({error})", stacklevel=2)
    raise UserError(f"{directory}: every checkpoint is damaged; remove the folder to start again")


def _content(path: Path) -> dict[str, Any]:
    content = read_json(path / CONTENT, REMEDY)
    if content.get("forgefield_format", FORMAT) != FORMAT:
        raise UserError(
            f"{path}: checkpoint format {content['forgefield_format']}, expected {FORMAT}; "
            f"remove {path.parent} to start again"
        )
    checked(path / CONTENT, content, Content, REMEDY)
    if sha256_of(path / ARRAYS) != content["sha256"]:
        raise DamagedFileError(f"{path / ARRAYS}: its sha256 is another than {CONTENT} says; {REMEDY}")
    return content


def saved_checkpoints(directory: Path) -> list[Path]:
    """Complete checkpoints, newest first."""
    if not directory.is_dir():
        return []
    return sorted((p for p in directory.iterdir() if re.fullmatch(r"epoch_\d{6,}", p.name)), reverse=True)


def remove_leftovers(directory: Path) -> None:
    """Remove what a killed process left half written."""
    for path in directory.glob(".epoch_*") if directory.is_dir() else ():
        shutil.rmtree(path)


def changed_keys(saved: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Keys whose saved and present values differ, after the round trip through JSON."""
    present = json.loads(json.dumps(present))
    keys = sorted(saved.keys() | present.keys())
    return {k: (saved.get(k), present.get(k)) for k in keys if saved.get(k) != present.get(k)}
