"""Every neighbor has one slot, and rows of two atoms leave few slots empty."""

import ase.build
import numpy as np
import pytest

from forgefield.data.neighbors import neighbor_counts, neighbor_pairs
from forgefield.data.slots import neighbor_slots, slots_per_row
from forgefield.data.structures import Structure

ATOMS = 16


def clusters(*sizes):
    """Receivers and senders of all pairs within 2.5 Å of random clusters, and the slots that their rows need."""
    random = np.random.default_rng(0)
    start, receivers, senders, needs = 0, [], [], []
    for size in sizes:
        found = neighbor_pairs(Structure(np.ones(size, int), random.uniform(0, 3, (size, 3))), 2.5)
        receivers.append(found.receiver + start)
        senders.append(found.sender + start)
        needs.append(slots_per_row(neighbor_counts(size, found)))
        start += size
    return np.concatenate(receivers), np.concatenate(senders), max(needs)


@pytest.mark.parametrize("sizes", [(6, 4), (7, 5, 3), (1, 1, 9), (5, 0, 2), (16,), ()])
def test_slots_hold_both_ends_of_every_pair_once(sizes):
    receiver, sender, need = clusters(*sizes, 0)
    slots = neighbor_slots(receiver, sender, sizes, ATOMS, need, float)
    assert sorted(slots.atom_order) == list(range(ATOMS))
    row, member, column = np.nonzero(slots.sign)
    assert len(row) == len(set(zip(row, column, strict=True))) == 2 * len(receiver)
    pair, atom = slots.pair[row, column], slots.atom_order[2 * row + member]
    other = slots.atom_order[slots.atom[row, column]]
    is_receiver = slots.sign[row, member, column] > 0
    np.testing.assert_array_equal(np.where(is_receiver, receiver[pair], sender[pair]), atom)
    np.testing.assert_array_equal(np.where(is_receiver, sender[pair], receiver[pair]), other)
    assert is_receiver.sum() == len(receiver)


@pytest.mark.parametrize(
    ("counts", "expected"), [([], 0), ([3], 6), ([1, 5], 6), ([1, 2, 5, 9], 10), ([4, 4, 5], 9), ([0, 0, 0], 0)]
)
def test_the_atom_with_most_neighbors_shares_its_row_with_the_one_with_fewest(counts, expected):
    """Of an odd number, the atom with the fewest is left to share a row with that of another structure."""
    assert slots_per_row(np.array(counts, int)) == expected


def test_a_molecule_fills_more_of_shared_rows():
    molecule = ase.build.nanotube(6, 6, length=6)
    found = neighbor_pairs(Structure(molecule.numbers, molecule.positions), 5.0)
    counts = neighbor_counts(len(molecule), found)
    shared, alone = 2 * counts.mean() / slots_per_row(counts), counts.mean() / counts.max()
    assert shared > 0.9 > 0.86 > alone
