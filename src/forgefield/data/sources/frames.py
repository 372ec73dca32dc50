"""What passes from the readers of single formats to the common rest of the data stage."""

from collections.abc import Mapping
from dataclasses import dataclass
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
    """

    numbers: np.ndarray
    positions: np.ndarray
    cell: np.ndarray
    pbc: np.ndarray
    values: Mapping[str, Any]


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
