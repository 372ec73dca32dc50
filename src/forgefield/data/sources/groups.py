"""Which structures of a source belong together when it is split."""

import numpy as np

from forgefield.config.split import Split
from forgefield.data.sources.frames import RawFrame
from forgefield.errors import UserError


class Groups:
    """A number for each structure's group, from 0 in the order in which the groups appear.

    Args:
        split: ``by`` says what makes a group; stratified splits have one for each set of elements.

    Attributes:
        numbers: one for each structure taken in; empty for splits that need none.
    """

    def __init__(self, split: Split):
        self._by = "elements" if split.stratify else split.by
        self._known: dict[object, int] = {}
        self.numbers: list[int] = []

    def add(self, frame: RawFrame, file: str, where: str) -> None:
        """Take in a frame.

        Raises:
            UserError: it lacks the key by which structures are grouped; the message begins with ``where``.
        """
        if self._by is not None:
            name = self._name(frame, file, where)
            self.numbers.append(self._known.setdefault(name, len(self._known)))

    def _name(self, frame: RawFrame, file: str, where: str) -> object:
        if self._by == "file":
            return file
        if self._by == "composition":
            return np.sort(frame.numbers).tobytes()
        if self._by == "elements":
            return np.unique(frame.numbers).tobytes()
        if self._by not in frame.values:
            there = ", ".join(sorted(frame.values)) or "none"
            raise UserError(f"{where}: no {self._by}, which is split.by; choose composition, file or a key of: {there}")
        return str(frame.values[self._by])
