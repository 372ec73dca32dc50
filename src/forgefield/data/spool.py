"""Structures parked in an unnamed temporary file, since how many there are is known only after the last."""

import pickle
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from forgefield.data.structures import Structure


class Spool:
    """A list of structures as a source gives them, on disk; a context manager that frees the space.

    The file has no name, so nobody else can write what is unpickled here.

    Args:
        directory: where the space is taken.
    """

    def __init__(self, directory: Path):
        self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 closed by __exit__
        self._starts = array("q")

    def append(self, structure: Structure) -> None:
        self._starts.append(self._file.tell())
        pickle.dump(_packed(structure), self._file, protocol=5)

    def __len__(self) -> int:
        return len(self._starts)

    def read(self, positions: Iterable[int]) -> Iterator[Structure]:
        """The structures at ``positions``, in that order."""
        for position in positions:
            self._file.seek(self._starts[position])
            yield _unpacked(*pickle.load(self._file))

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()


def _packed(s: Structure) -> tuple:
    """Bytes are pickled in a tenth of the time of arrays."""
    forces, virial = (None if label is None else label.tobytes() for label in (s.forces, s.virial))
    numbers = s.numbers.astype(np.uint8).tobytes()
    arrays = (numbers, s.positions.tobytes(), s.cell.tobytes(), s.pbc.tobytes(), forces, virial)
    return *arrays, s.energy, s.energy_weight, s.forces_weight, s.virial_weight, s.source_index


def _unpacked(numbers, positions, cell, pbc, forces, virial, energy, *others) -> Structure:
    return Structure(
        np.frombuffer(numbers, np.uint8).astype(np.int64),
        np.frombuffer(positions).reshape(-1, 3),
        np.frombuffer(cell).reshape(3, 3),
        np.frombuffer(pbc, bool),
        energy,
        None if forces is None else np.frombuffer(forces).reshape(-1, 3),
        None if virial is None else np.frombuffer(virial).reshape(3, 3),
        *others,
    )
