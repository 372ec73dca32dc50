"""Every neighbor has one slot, and rows of two atoms leave few slots empty."""

import ase.build
import numpy as np
import pytest

from forgefield.data.neighbors import neighbor_counts, neighbor_pairs
from forgefield.data.slots import neighbor_slots, slots_per_row
from forgefield.data.structures import Structure

ATOMS = 16


def cluster(size):
    """Receivers and senders of all pairs within 2.5 Å, and the slots that rows need."""
    positions = np.random.default_rng(size).uniform(0, 3, (size, 3))
    found = neighbor_pairs(Structure(np.ones(size, int), positions), 2.5)
    return found.receiver, found.sender, slots_per_row(neighbor_counts(size, found), np.array([size]))[0]


@pytest.mark.parametrize("size", [0, 1, 2, 9, 10, 15, 16])
def test_slots_hold_both_ends_of_every_pair_once(size):
    receiver, sender, need = cluster(size)
    slots = neighbor_slots(receiver, sender, size, ATOMS, need, float)
    assert sorted(slots.atom_order) == list(range(ATOMS))
    row, member, column = np.nonzero(slots.sign)
    assert len(row) == len(set(zip(row, column, strict=True))) == 2 * len(receiver)
    pair, atom = slots.pair[row, column], slots.atom_order[2 * row + member]
    other = slots.atom_order[slots.atom[row, column]]
    is_receiver = slots.sign[row, member, column] > 0
    np.testing.assert_array_equal(np.where(is_receiver, receiver[pair], sender[pair]), atom)
    np.testing.assert_array_equal(np.where(is_receiver, sender[pair], receiver[pair]), other)
    assert is_receiver.sum() == len(receiver)


def test_the_order_of_atoms_does_not_depend_on_padding():
    receiver, sender, need = cluster(9)
    tight, wide = (neighbor_slots(receiver, sender, 9, atoms, need, float) for atoms in (10, 16))
    for few, many in zip(tight, wide, strict=True):
        np.testing.assert_array_equal(few, many[: len(few)])


@pytest.mark.parametrize(
    ("counts", "expected"), [([], 1), ([3], 3), ([1, 5], 6), ([9, 1, 5, 2], 10), ([4, 4, 5], 8), ([0, 0, 0], 1)]
)
def test_the_atom_with_most_neighbors_shares_its_row_with_the_one_with_fewest(counts, expected):
    """An odd number is filled up by an atom of padding."""
    assert slots_per_row(np.array(counts, int), np.array([len(counts)])).tolist() == [expected]


def test_batches_of_any_sizes_have_needs_of_their_own():
    counts = np.array([1, 5, 3, 9, 1, 5, 2])
    assert slots_per_row(counts, np.array([2, 1, 4, 0])).tolist() == [6, 3, 10, 1]


def test_a_molecule_fills_more_of_shared_rows():
    molecule = ase.build.nanotube(6, 6, length=6)
    found = neighbor_pairs(Structure(molecule.numbers, molecule.positions), 5.0)
    counts = neighbor_counts(len(molecule), found)
    shared, alone = 2 * counts.mean() / slots_per_row(counts, np.array([len(counts)]))[0], counts.mean() / counts.max()
    assert shared > 0.9 > 0.86 > alone
