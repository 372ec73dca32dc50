"""Structures parked in an unnamed temporary file, since how many there are is known only after the last."""

import struct
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from forgefield.data.joined import Joined
from forgefield.data.structures import Structure

HEAD = struct.Struct("<qq3?3?2x4d")
"""Frame and number of atoms, which labels there are, pbc, the energy and the three weights; cell and virial follow,
then positions, forces if there are any, and atomic numbers of a byte each."""
TENSOR = 9 * 8  # bytes


class Spool:
    """A list of structures as a source gives them, on disk; a context manager that frees the space.

    Args:
        directory: where the space is taken.
    """

    def __init__(self, directory: Path):
        self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 closed by __exit__
        self._ends = array("q", [0])

    def append(self, records: bytes, lengths: np.ndarray) -> None:
        """Put what :func:`pack` has made of structures behind those that are there."""
        self._file.seek(self._ends[-1])
        self._file.write(records)
        self._ends.extend((self._ends[-1] + np.cumsum(lengths)).tolist())

    def __len__(self) -> int:
        return len(self._ends) - 1

    def read(self, positions: Iterable[int]) -> Iterator[Structure]:
        """The structures at ``positions``, in that order."""
        for position in positions:
            start, end = self._ends[position : position + 2]
            self._file.seek(start)
            yield unpack(self._file.read(end - start))

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()


def pack(joined: Joined) -> tuple[bytes, np.ndarray]:
    """A record of each structure, one after the other, and the bytes of each."""
    numbers, cells, virials = joined.numbers.astype(np.uint8).tobytes(), joined.cells, joined.virials
    positions, forces = (memoryview(np.ascontiguousarray(x)).cast("B") for x in (joined.positions, joined.forces))
    labels = np.stack([joined.has_energy, joined.has_forces, joined.has_virial], axis=1).tolist()
    pieces, start = [], 0
    for i, s in enumerate(joined.structures):
        end = start + len(s)
        scalars = (joined.energies[i], s.energy_weight, s.forces_weight, s.virial_weight)
        pieces += (HEAD.pack(s.source_index, len(s), *labels[i], *s.pbc, *scalars), cells[i].tobytes())
        pieces += (virials[i].tobytes(), positions[24 * start : 24 * end])
        if labels[i][1]:
            pieces.append(forces[24 * start : 24 * end])
        pieces.append(numbers[start:end])
        start = end
    return b"".join(pieces), HEAD.size + 2 * TENSOR + joined.sizes * np.where(joined.has_forces, 49, 25)


def unpack(content: bytes) -> Structure:
    """The structure of one record."""
    index, n, has_energy, has_forces, has_virial, *pbc, energy, w_energy, w_forces, w_virial = HEAD.unpack_from(content)
    cell, virial = np.frombuffer(content, float, 18, HEAD.size).reshape(2, 3, 3)
    start = HEAD.size + 2 * TENSOR
    atoms = np.frombuffer(content, float, (len(content) - start - n) // 8, start).reshape(-1, n, 3)
    numbers = np.frombuffer(content, np.uint8, n, len(content) - n).astype(np.int64)
    return Structure(
        numbers=numbers,
        positions=atoms[0],
        cell=cell,
        pbc=np.array(pbc),
        energy=energy if has_energy else None,
        forces=atoms[1] if has_forces else None,
        virial=virial if has_virial else None,
        energy_weight=w_energy,
        forces_weight=w_forces,
        virial_weight=w_virial,
        source_index=index,
    )
