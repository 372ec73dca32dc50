"""In which of its files, and where in it, a frame is that is known by its number in the whole source."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from forgefield.errors import FrameError, UserError


@dataclass(frozen=True)
class Places:
    """The files of a source.

    Attributes:
        files: path, and number in the whole source of the first frame, of each in order; empty where nothing is known.
        otherwise: what frames are said to be in where no file is known.
    """

    files: Sequence[tuple[str, int]] = ()
    otherwise: str = ""

    def words(self, indices: Iterable[int]) -> str:
        """Frames of the source as a user knows them: ``a.xyz, frames 0, 3; b.xyz, frame 1``."""
        groups = groupby(sorted(indices), self._file)
        return "; ".join(self._of_file(number, [*group]) for number, group in groups)

    def _file(self, index: int) -> int:
        return bisect_right([first for _, first in self.files], index) - 1

    def _of_file(self, number: int, indices: list[int]) -> str:
        path, first = (f"{self.files[number][0]}, ", self.files[number][1]) if number >= 0 else (self.otherwise, 0)
        return f"{path}frame{'s' * (len(indices) > 1)} {', '.join(str(index - first) for index in indices)}"


@contextmanager
def placed(places: Places, model: str = "") -> Iterator[None]:
    """Let a mistake in a frame name the file that the frame is in, and the model that found it."""
    try:
        yield
    except FrameError as error:
        of_model = f", {model}" if model else ""
        raise UserError(f"{places.words([error.frame])}{of_model}: {error.problem}") from None
