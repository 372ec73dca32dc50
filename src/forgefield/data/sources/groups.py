"""Which structures of a source belong together when it is split."""

from array import array
from collections.abc import Hashable, Iterable

import numpy as np

from forgefield.config.split import Split
from forgefield.data.sources.frames import RawFrame
from forgefield.errors import UserError


class GroupNames:
    """What the group of a structure is called.

    Args:
        split: ``by`` says what makes a group; stratified splits have one for each set of elements.

    Attributes:
        is_wanted: whether the split needs groups.
    """

    def __init__(self, split: Split) -> None:
        self._by = "elements" if split.stratify else split.by
        self.is_wanted = self._by is not None

    def __call__(self, frame: RawFrame, file: str, where: str) -> Hashable:
        """The name of a frame's group.

        Raises:
            UserError: it lacks the key by which structures are grouped; the message begins with ``where``.
        """
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


class Groups:
    """A number for each structure's group, from 0 in the order in which the groups appear.

    Attributes:
        numbers: one for each structure taken in; empty for splits that need none.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self.numbers = array("q")

    def add(self, names: Iterable[Hashable]) -> None:
        """Take in the names of the next structures' groups."""
        self.numbers.extend(self._known.setdefault(name, len(self._known)) for name in names)
