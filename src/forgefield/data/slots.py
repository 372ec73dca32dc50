"""Dense neighbor slots: two atoms share a row of them, one with many neighbors and one with few.

All rows are as long as the longest. Were each atom to have its own, 29 % (3BPA) to 47 % (buckyball catcher) of slots
would be empty, as atoms differ much in their neighbors; of shared rows a tenth is.
"""

from typing import NamedTuple

import numpy as np

ATOMS_PER_ROW = 2


class NeighborSlots(NamedTuple):
    """N atoms, in an order of their own, in R = N / 2 rows of K slots.

    Attributes:
        atom_order: (N,) int32 atoms, two for each row.
        atom: (R, K) int32 place in ``atom_order`` of each slot's neighbor; 0 for padding.
        pair: (R, K) int32 pair of each slot; 0 for padding.
        sign: (R, 2, K) for the atom whose neighbor it is, +1 as the pair's receiver, -1 as its sender; 0 for the row's
            other atom and for padding.
    """

    atom_order: np.ndarray
    atom: np.ndarray
    pair: np.ndarray
    sign: np.ndarray


def slots_per_row(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(b,) slots that the rows of each batch need, 1 at least.

    Args:
        counts: neighbors of each atom, batch after batch.
        sizes: (b,) atoms of each batch.
    """
    even = sizes + sizes % ATOMS_PER_ROW
    column = np.arange(even.max(initial=ATOMS_PER_ROW))
    descending = np.zeros((len(sizes), len(column)), np.int32)
    descending[column < sizes[:, None]] = -counts
    descending = -np.sort(descending, axis=1)
    # beyond a batch's atoms, the sum is the largest count alone
    partner = np.maximum(even[:, None] - 1 - column, 0)
    return np.maximum((descending + np.take_along_axis(descending, partner, axis=1)).max(axis=1), 1)


def neighbor_slots(
    receiver: np.ndarray, sender: np.ndarray, real_atoms: int, atoms: int, slots: int, dtype: np.dtype | type
) -> NeighborSlots:
    """Lay out both directions of the pairs (P,) of ``real_atoms``, to which padding is added up to ``atoms``."""
    n_pairs = len(receiver)
    atom, neighbor = np.concatenate([receiver, sender]), np.concatenate([sender, receiver])
    atom_order = _order(np.bincount(atom, minlength=atoms), real_atoms)
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


def _order(counts: np.ndarray, real_atoms: int) -> np.ndarray:
    """(N,) atoms by rows: the one with most neighbors with the one with fewest, and so on; padding last."""
    even = real_atoms + real_atoms % ATOMS_PER_ROW
    ascending = np.argsort(counts[:even], kind="stable")
    rows = np.stack([ascending[: even // 2], ascending[even // 2 :][::-1]], axis=1)
    return np.concatenate([rows.ravel(), np.arange(even, len(counts))]).astype(np.int32)
