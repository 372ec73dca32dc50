"""Which way to split suits data: by whether frames that follow each other are of the same atoms."""

from typing import Any

import numpy as np

from forgefield.data.structures import Structure

MANY = 1000  # compositions that are told apart
LEAST_GROUPS = 10  # with as many, each part of a split can have some of its own


class Order:
    """Counts frames with the atoms of the one before, and compositions; fed structure by structure."""

    def __init__(self) -> None:
        self._n, self._alike = 0, 0
        self._before = np.zeros(0, np.int64)
        self._compositions: set[bytes] = set()

    def add(self, structure: Structure) -> None:
        """Take one structure in."""
        self._n += 1
        self._alike += np.array_equal(structure.numbers, self._before)
        self._before = structure.numbers
        if len(self._compositions) < MANY:
            self._compositions.add(np.sort(structure.numbers).tobytes())

    def result(self) -> dict[str, Any]:
        """The share of frames with the atoms of the one before, and how many compositions there are, up to ``MANY``."""
        return {"alike": self._alike / max(self._n - 1, 1), "compositions": len(self._compositions)}


def suitable_split(order: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Settings of a split for data with such an order, and why."""
    if order["alike"] < 0.5:
        return {"method": "random"}, "frames that follow each other are of other atoms, so they are no trajectory"
    if order["compositions"] == 1:
        return {"method": "blocks"}, "all frames are of the same atoms, as in one trajectory; near ones stay together"
    if order["compositions"] >= LEAST_GROUPS:
        by = {"method": "group", "by": "composition"}
        return by, "runs of frames of the same atoms, as in trajectories: no molecule is in two parts"
    why = "too few compositions for parts of their own; if they are trajectories, test errors will look too small"
    return {"method": "random", "stratify": True}, why
