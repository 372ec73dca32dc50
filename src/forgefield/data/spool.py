"""Structures parked in an unnamed temporary file, since how many there are is known only after the last."""

import pickle
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from forgefield.data.structures import Structure


class Spool:
    """A list of structures on disk; a context manager that frees the space.

    The file has no name, so nobody else can write what is unpickled here.

    Args:
        directory: where the space is taken.
    """

    def __init__(self, directory: Path):
        self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 closed by __exit__
        self._starts: list[int] = []

    def append(self, structure: Structure) -> None:
        self._starts.append(self._file.tell())
        pickle.dump(structure, self._file, protocol=5)

    def __len__(self) -> int:
        return len(self._starts)

    def read(self, positions: Iterable[int]) -> Iterator[Structure]:
        """The structures at ``positions``, in that order."""
        for position in positions:
            self._file.seek(self._starts[position])
            yield pickle.load(self._file)

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()
