"""Checkpoints in safe formats: arrays as safetensors, the rest as JSON; visible only when complete."""

import json
import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from safetensors.numpy import load_file, save_file

from forgefield.errors import UserError
from forgefield.files import atomic_directory, read_json, sha256_of, write_json

FORMAT = 1
KEEP = 2
ARRAYS, CONTENT = "arrays.safetensors", "content.json"


class Checkpoint(NamedTuple):
    """Arrays as a pytree, and JSON content."""

    arrays: Any
    content: dict[str, Any]


def save_checkpoint(directory: Path, epoch: int, arrays: Any, content: dict[str, Any]) -> Path:
    """Write ``directory/epoch_NNNNNN``, then remove all but the newest two.

    Args:
        directory: of all checkpoints of a training.
        epoch: finished epochs.
        arrays: a pytree of arrays; containers may be of any registered type.
        content: JSON content; must not hold NaN.
    """
    path = directory / f"epoch_{epoch:06d}"
    with atomic_directory(path) as temporary:
        save_arrays(temporary / ARRAYS, arrays)
        digest = sha256_of(temporary / ARRAYS)
        write_json(temporary / CONTENT, {"forgefield_format": FORMAT, "sha256": digest, **content})
    for old in saved_checkpoints(directory)[KEEP:]:
        shutil.rmtree(old)
    return path


def load_newest(directory: Path, template: Any, fingerprint: Mapping[str, Any]) -> Checkpoint | None:
    """The newest undamaged checkpoint, or None where there is none.

    Args:
        directory: of all checkpoints of a training.
        template: a pytree like the one that was saved, for structure, names, shapes and types.
        fingerprint: must equal the one in the content.

    Raises:
        UserError: there are checkpoints and all are damaged, or one is of other settings, data, model or optimizer.
    """
    if not saved_checkpoints(directory):
        return None
    path, content = _newest_undamaged(directory)
    for key, (saved, present) in changed_keys(content["fingerprint"], fingerprint).items():
        raise UserError(
            f"{path}: {key} was {saved} and is now {present}; set it back to continue, "
            f"or remove {directory} to start again"
        )
    return Checkpoint(load_arrays(path / ARRAYS, template), content)


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
            content = read_json(path / CONTENT)
            intact = sha256_of(path / ARRAYS) == content["sha256"]
        except (OSError, ValueError, KeyError):
            intact = False
        if not intact:
            warnings.warn(f"{path}: damaged checkpoint passed over", stacklevel=2)
        elif content["forgefield_format"] != FORMAT:
            raise UserError(f"{path}: checkpoint format {content['forgefield_format']}, expected {FORMAT}")
        else:
            return path, content
    raise UserError(f"{directory}: every checkpoint is damaged; remove the folder to start again")


def saved_checkpoints(directory: Path) -> list[Path]:
    """Complete checkpoints, newest first."""
    if not directory.is_dir():
        return []
    return sorted((p for p in directory.iterdir() if re.fullmatch(r"epoch_\d{6,}", p.name)), reverse=True)


def remove_leftovers(directory: Path) -> None:
    """Remove what a killed process left half written."""
    for path in directory.glob(".epoch_*") if directory.is_dir() else ():
        shutil.rmtree(path)


def save_arrays(path: Path, tree: Any) -> None:
    """Write a pytree's arrays under the names of their places in it."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    # not ascontiguousarray, which turns scalars into vectors
    save_file({jax.tree_util.keystr(k): np.asarray(v, order="C") for k, v in leaves}, path)


def load_arrays(path: Path, template: Any) -> Any:
    """Read a pytree of arrays written by :func:`save_arrays`.

    Raises:
        UserError: names, shapes or types are not those of ``template``.
    """
    saved = load_file(path)
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    wanted = {jax.tree_util.keystr(k): v for k, v in leaves}
    wrong = sorted(set(saved) ^ set(wanted)) or sorted(
        k for k, v in wanted.items() if saved[k].shape != np.shape(v) or saved[k].dtype != np.asarray(v).dtype
    )
    if wrong:
        raise UserError(
            f"{path}: {wrong[0]} does not match this model or optimizer; "
            "use the settings it was saved with, or another file"
        )
    return jax.tree_util.tree_unflatten(structure, [saved[k] for k in wanted])


def changed_keys(saved: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Keys whose saved and present values differ, after the round trip through JSON."""
    present = json.loads(json.dumps(present))
    keys = sorted(saved.keys() | present.keys())
    return {k: (saved.get(k), present.get(k)) for k in keys if saved.get(k) != present.get(k)}
