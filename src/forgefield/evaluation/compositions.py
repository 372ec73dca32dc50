"""Structures by what they are made of."""

from collections.abc import Sequence

import numpy as np
from ase.data import chemical_symbols
from ase.formula import Formula

NUMBERS = len(chemical_symbols)


class Compositions:
    """The compositions met so far, in that order."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def number(self, species: np.ndarray) -> np.ndarray:
        """(rows,) the number of each row's composition, from atomic numbers (rows, atoms) with 0 for padding."""
        rows = len(species)
        place = np.arange(rows)[:, None] * NUMBERS + species
        counts = np.bincount(place.ravel(), minlength=rows * NUMBERS).reshape(rows, NUMBERS)
        counts[:, 0] = 0
        kinds, inverse = np.unique(counts, axis=0, return_inverse=True)
        numbers = np.array([self._known.setdefault(kind.tobytes(), len(self._known)) for kind in kinds])
        return numbers[inverse.ravel()]

    @property
    def counts(self) -> np.ndarray:
        """(compositions, NUMBERS) atoms of each atomic number."""
        return np.frombuffer(b"".join(self._known), np.int64).reshape(-1, NUMBERS)


def formula(counts: Sequence[int] | np.ndarray) -> str:
    """As C2H6O."""
    return Formula.from_dict({chemical_symbols[z]: int(counts[z]) for z in np.flatnonzero(counts)}).format("hill")
