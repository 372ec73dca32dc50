"""Dense neighbor slots: two atoms share a row of them, one with many neighbors and one with few.

Rows are as long as the longest, and atoms of one structure differ much in their neighbors: of rows for single atoms a
third (3BPA) to a half (buckyball catcher) would be empty, of rows for such pairs a sixth and a fourteenth.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

ATOMS_PER_ROW = 2


class NeighborSlots(NamedTuple):
    """N atoms in R = N / 2 rows of K slots; the rows' order of atoms is that of a permutation.

    Attributes:
        atom_order: (N,) int32 atoms, two for each row.
        atom: (R, K) int32 place in ``atom_order`` of each slot's neighbor; 0 for padding.
        pair: (R, K) int32 pair of each slot; 0 for padding.
        sign: (R, 2, K) for the atom whose neighbor it is, +1 as the pair's receiver, -1 as its sender; 0 for the other
            atom and for padding.
    """

    atom_order: np.ndarray
    atom: np.ndarray
    pair: np.ndarray
    sign: np.ndarray


def slots_per_row(counts: np.ndarray) -> int:
    """Slots that a row needs to hold any two atoms that :func:`neighbor_slots` may put into one.

    Args:
        counts: (n,) neighbors of each atom of one structure. Of several, the one that needs the most decides.
    """
    shared, single = _by_rows(counts)
    return max(int(counts[shared].sum(axis=1).max(initial=0)), 2 * int(counts[single].max(initial=0)))


def neighbor_slots(
    receiver: np.ndarray, sender: np.ndarray, sizes: Sequence[int], atoms: int, slots: int, dtype: np.dtype | type
) -> NeighborSlots:
    """Lay out both directions of the pairs (P,) of structures with ``sizes`` atoms, one after another."""
    n_pairs = len(receiver)
    atom, neighbor = np.concatenate([receiver, sender]), np.concatenate([sender, receiver])
    counts = np.bincount(atom, minlength=atoms)
    atom_order = _batch_order(counts, sizes)
    place = np.empty(atoms, np.int32)
    place[atom_order] = np.arange(atoms, dtype=np.int32)
    entry = np.argsort(place[atom], kind="stable")
    row, member = np.divmod(place[atom][entry], ATOMS_PER_ROW)
    in_row = np.bincount(row, minlength=atoms // ATOMS_PER_ROW)
    column = np.arange(len(row)) - (np.cumsum(in_row) - in_row)[row]
    shape = atoms // ATOMS_PER_ROW, slots
    made = NeighborSlots(
        atom_order,
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros((shape[0], ATOMS_PER_ROW, slots), dtype),
    )
    made.atom[row, column] = place[neighbor][entry]
    made.pair[row, column] = np.tile(np.arange(n_pairs, dtype=np.int32), 2)[entry]
    made.sign[row, member, column] = np.repeat(np.array([1, -1], dtype), n_pairs)[entry]
    return made


def _by_rows(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n // 2, 2) atoms of one structure that share rows, and (n % 2,) the one that is left.

    The one left has the fewest neighbors, so that two such atoms of any structures fit a row that is long enough for
    each of the structures.
    """
    ascending = np.argsort(counts, kind="stable")
    single, rest = np.split(ascending, [len(counts) % 2])
    half = len(rest) // 2
    return np.stack([rest[:half], rest[half:][::-1]], axis=1), single


def _batch_order(counts: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """(N,) all atoms: those that share rows within their structure, those left, and padding."""
    shared, left, start = [], [], 0
    for size in sizes:
        of_structure, single = _by_rows(counts[start : start + size])
        shared.append(of_structure.ravel() + start)
        left.append(single + start)
        start += size
    return np.concatenate([*shared, *left, np.arange(start, len(counts))]).astype(np.int32)
