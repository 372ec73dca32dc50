"""The frames that a conversion leaves out, and why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from forgefield.data.sources import RejectedFrame
from forgefield.data.sources.converter import ISOLATED, UNLABELLED
from forgefield.data.sources.labels import LabelKeys
from forgefield.errors import UserError

LISTED = 100  # frames left out that a report names


class Rejected:
    """How many frames are left out for which reason, and the first of them.

    Attributes:
        reasons: how many frames for each.
        first: for each reason the first frame.
        listed: the first LISTED frames.
        warnings: a line for each file without a usable frame, but for files of isolated atoms.
    """

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.first: dict[str, RejectedFrame] = {}
        self.listed: list[RejectedFrame] = []
        self.warnings: list[str] = []
        self._before: Counter[str] = Counter()
        self._unlabelled: dict[str, list[str]] = {}

    @property
    def count(self) -> int:
        return self.reasons.total()

    @property
    def counts(self) -> str:
        """Reasons in words, each with its number."""
        return _words(self.reasons)

    def add(self, frames: Sequence[RejectedFrame]) -> None:
        """Take in frames that follow those before."""
        for frame in frames:
            self.reasons[frame.reason] += 1
            self.first.setdefault(frame.reason, frame)
        self.listed += frames[: LISTED - len(self.listed)]

    def end_file(self, file: Mapping[str, Any], is_usable: bool) -> None:
        """Take notice of the end of a file of a source, and of whether a frame in it is usable."""
        reasons, self._before = self.reasons - self._before, self.reasons.copy()
        if is_usable or reasons.keys() <= {ISOLATED}:
            return
        if UNLABELLED in reasons:
            self._unlabelled[file["path"]] = file["unlabelled"]
        self.warnings.append(f"{file['path']}: no usable frame: {_words(reasons)}")

    def check_files(self, keys: LabelKeys) -> None:
        """At the end of a source, of which other files have labels by these keys.

        Raises:
            UserError: a file has none of them.
        """
        for path, there in self._unlabelled.items():
            raise UserError(
                f"{path}: no frame in it has a label: others have {', '.join(keys.found.values())}, this file has "
                f"{', '.join(there) or 'no keys'}; give all files the same keys, or leave it out of `source`"
            )


def _words(reasons: Counter[str]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in sorted(reasons.items()))
