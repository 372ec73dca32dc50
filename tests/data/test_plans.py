from collections import Counter
from itertools import pairwise

import numpy as np

from forgefield.data.batching import Capacity
from forgefield.data.plans import MAX_SHAPES, Sizes, batch_needs, choose_capacities, epoch_order, split_batches


def sizes(n, seed=0):
    random = np.random.default_rng(seed)
    atoms = random.integers(3, 40, n)
    return Sizes(atoms, atoms * 6, random.integers(0, 20, atoms.sum()))


def test_order_depends_on_seed_and_epoch_only():
    assert np.array_equal(epoch_order(20, seed=1, epoch=2), epoch_order(20, seed=1, epoch=2))
    assert not np.array_equal(epoch_order(20, seed=1, epoch=2), epoch_order(20, seed=1, epoch=3))
    assert not np.array_equal(epoch_order(20, seed=1, epoch=2), epoch_order(20, seed=2, epoch=2))
    assert sorted(epoch_order(20, seed=1, epoch=2)) == list(range(20))


def test_the_last_batch_may_be_short():
    assert [b.tolist() for b in split_batches(np.arange(10), 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_needs_are_those_of_the_largest_part():
    neighbors = np.repeat([2, 3, 9, 1, 4], [3, 4, 30, 2, 5])
    all_sizes = Sizes(np.array([3, 4, 30, 2, 5]), np.array([10, 20, 100, 5, 30]), neighbors)
    order = np.arange(5)  # with two parts: 0+1 | 2+3, and 4 | nothing
    assert batch_needs(all_sizes, order, batch=4, parts=2).tolist() == [[32, 112, 18], [8, 32, 8]]
    assert batch_needs(all_sizes, order, batch=4, parts=1).tolist() == [[40, 144, 18], [8, 32, 8]]
    assert batch_needs(all_sizes, order[:4], batch=4, parts=2).tolist() == [[32, 112, 18]]


def test_needs_agree_with_a_plain_loop():
    s = sizes(47)
    order = epoch_order(47, seed=0, epoch=0)
    for parts in (1, 2, 3):
        got = batch_needs(s, order, batch=6, parts=parts)
        for need, rows in zip(got, split_batches(order, 6), strict=True):
            pieces = [p for p in np.array_split(rows, parts) if len(p)]
            assert need[0] == -(-max(s.atoms[p].sum() for p in pieces) // 8) * 8
            assert need[1] == -(-(max(s.pairs[p].sum() for p in pieces) + 1) // 16) * 16
            assert need[2] == max(slots(s, piece) for piece in pieces)


def slots(s, rows):
    """Slots of a row of two atoms, the one with most neighbors beside the one with fewest."""
    ends = np.cumsum(s.atoms)
    counts = np.sort(np.concatenate([s.neighbors[ends[row] - s.atoms[row] : ends[row]] for row in rows]))
    counts = np.concatenate([np.zeros(len(counts) % 2, int), counts])
    return (counts + counts[::-1]).max()


def test_many_structures_are_looked_at_in_blocks(monkeypatch):
    s, order = sizes(47), epoch_order(47, seed=0, epoch=0)
    expected = batch_needs(s, order, batch=6, parts=2)
    monkeypatch.setattr("forgefield.data.plans.BLOCK", 13)
    assert np.array_equal(batch_needs(s, order, batch=6, parts=2), expected)


def test_few_shapes_hold_every_batch_and_save_work():
    s = sizes(400)
    counts = Counter(
        tuple(need) for e in range(30) for need in batch_needs(s, epoch_order(400, 0, e), batch=4, parts=1).tolist()
    )
    shapes = choose_capacities(counts, structures=4)
    assert 1 < len(shapes) <= MAX_SHAPES
    assert all(shapes[-1].holds(Capacity(4, *need)) for need in counts)
    assert all(larger.holds(smaller) for smaller, larger in pairwise(shapes))


def test_alike_batches_or_a_short_training_get_one_shape():
    assert choose_capacities({(72, 480, 20): 5000}, structures=4) == [Capacity(4, 72, 480, 20)]
    short = Counter(map(tuple, batch_needs(sizes(40), np.arange(40), batch=4, parts=1).tolist()))
    assert len(choose_capacities(short, structures=4)) == 1
