"""What passes from the readers of single formats to the common rest of the data stage."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class RawFrame:
    """One frame as it is in its file, in the file's units.

    Attributes:
        numbers: (n,) atomic numbers.
        positions: (n, 3).
        cell: (3, 3) cell vectors as rows.
        pbc: (3,).
        values: everything else the file holds for this frame, labels among it, by the file's own keys.
        unconverged: how the file says that the calculation did not converge; None where it did, or does not say.
    """

    numbers: np.ndarray
    positions: np.ndarray
    cell: np.ndarray
    pbc: np.ndarray
    values: Mapping[str, Any]
    unconverged: str | None = None


@dataclass(frozen=True)
class ReadOptions:
    """What a reader needs to know of who reads.

    Attributes:
        is_label: whether an array of that name would be read as a label, and must then have a row for each frame.
        warnings: takes what a user should know, each text once.
        remedy: what messages say that a user can do about a file that is not of the format it is read as.
        progress: takes the part of the file, up to 1, that has been read.
    """

    is_label: Callable[[str], bool] = lambda key: False
    warnings: list[str] = field(default_factory=list)
    remedy: str = "set `format`"
    progress: Callable[[float], None] = lambda part: None


@dataclass(frozen=True)
class RejectedFrame:
    """A frame that is no mistake but cannot be trained on.

    Attributes:
        file: its file.
        frame: its number in that file, from 0.
        source_index: its number in the whole source, from 0.
        reason: why it is left out.
    """

    file: str
    frame: int
    source_index: int
    reason: str
