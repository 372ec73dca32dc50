"""Frame numbers of a split, as text and in files, so that it can be reproduced elsewhere."""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from forgefield.config.messages import did_you_mean
from forgefield.data.splits import PARTS, Parts
from forgefield.errors import UserError
from forgefield.files import read_json

OTHER_KEYS = {"method", "seed", "by", "stratify", "file", "sources"}  # of conversion.json, beside the parts
FARTHEST = 2**62  # frame
SHAPE = '"0-9, 12" or a list of frame numbers'


def ranges(numbers: np.ndarray) -> str:
    """Ascending numbers as text: 0-4, 7, 9-11."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
    ends = np.append(starts[1:], len(numbers)) - 1
    text = io.StringIO()  # and no list of runs, of which there may be as many as numbers
    for first, last in zip(numbers[starts], numbers[ends], strict=True):
        text.write(f", {first}-{last}" if last > first else f", {first}")
    return text.getvalue().removeprefix(", ")


def read_split(path: Path, usable: np.ndarray, sha256: Sequence[str]) -> Parts:
    """The split that a file lists, as positions among the usable frames.

    Args:
        path: conversion.json, or a JSON file with the frame numbers of each part.
        usable: (N,) ascending frame numbers of the source that can be used.
        sha256: of the source's files, which must be those of the conversion.

    Raises:
        UserError: the file is not there, is no such file or of another source, or names a frame that cannot be used or
            is named twice.
    """
    content = read_json(path, "name the conversion.json of an earlier conversion, or write such a file")
    made_from = [source.get("sha256") for source in content.get("sources", []) if isinstance(source, dict)]
    if made_from and made_from != list(sha256):
        raise UserError(f"{path}: the split of other source files; convert those that it was made from, in their order")
    listed = content.get("split", content)
    if isinstance(listed, dict) and (unknown := sorted(listed.keys() - {*PARTS, *OTHER_KEYS})):
        raise UserError(f"{path}: unknown part {unknown[0]!r}{did_you_mean(unknown[0], PARTS)}")
    parts = {part: _numbers(path, part, listed, int(usable[-1])) for part in PARTS}
    everything, counts = np.unique(np.concatenate(list(parts.values())), return_counts=True)
    if (counts > 1).any():
        raise UserError(f"{path}: frame {everything[counts > 1][0]} is listed twice; remove one")
    if len(lost := np.setdiff1d(everything, usable)):
        raise UserError(f"{path}: frame {lost[0]} is not in the source, or is left out there; repair the list")
    return {part: np.searchsorted(usable, np.sort(numbers)) for part, numbers in parts.items()}


def _numbers(path: Path, part: str, listed: Any, last: int) -> np.ndarray:
    """The frame numbers of one part, at most one beyond the ``last`` that there can be."""
    value = listed.get(part) if isinstance(listed, dict) else None
    value = value.get("frames") if isinstance(value, dict) else value
    if isinstance(value, str) and re.fullmatch(r"\s*\d+(-\d+)?(\s*,\s*\d+(-\d+)?)*\s*", value):
        return np.concatenate([_run(f"{path}: {part}", run.split("-"), last) for run in value.split(",")])
    if isinstance(value, list) and value and all(type(number) is int for number in value):
        return np.array(value)
    raise UserError(f"{path}: {part}: expected {SHAPE}, found {str(value)[:40]!r}")


def _run(where: str, ends: list[str], last: int) -> np.ndarray:
    """The numbers from the first to the second end, at most one beyond the ``last`` that there can be."""
    first, stop = int(ends[0]), int(ends[-1])
    if stop < first:
        raise UserError(f"{where}: the range {first}-{stop} runs backwards; write {stop}-{first}")
    return np.arange(first, min(stop, last + 1) + 1) if first <= last else np.array([min(first, FARTHEST)])
