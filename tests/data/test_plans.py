from itertools import pairwise

import numpy as np

from forgefield.data.batching import Capacity
from forgefield.data.plans import MAX_SHAPES, Sizes, batch_needs, choose_capacities, epoch_order, split_batches


def sizes(n, seed=0):
    atoms = np.random.default_rng(seed).integers(3, 40, n)
    return Sizes(atoms, atoms * 6, np.minimum(atoms - 1, 20))


def test_order_depends_on_seed_and_epoch_only():
    assert np.array_equal(epoch_order(20, seed=1, epoch=2), epoch_order(20, seed=1, epoch=2))
    assert not np.array_equal(epoch_order(20, seed=1, epoch=2), epoch_order(20, seed=1, epoch=3))
    assert not np.array_equal(epoch_order(20, seed=1, epoch=2), epoch_order(20, seed=2, epoch=2))
    assert sorted(epoch_order(20, seed=1, epoch=2)) == list(range(20))


def test_short_last_batch_is_kept_or_dropped():
    order = np.arange(10)
    assert [len(b) for b in split_batches(order, 4)] == [4, 4, 2]
    assert [len(b) for b in split_batches(order, 4, drop_last=True)] == [4, 4]
    assert np.concatenate(split_batches(order, 4)).tolist() == list(range(10))


def test_needs_are_those_of_the_largest_part():
    all_sizes = Sizes(np.array([3, 4, 30, 2, 5]), np.array([10, 20, 100, 5, 30]), np.array([2, 3, 9, 1, 4]))
    batches = [np.array([0, 1, 2, 3]), np.array([4])]  # with two parts: 0+1 | 2+3, and 4 | nothing
    assert batch_needs(all_sizes, batches, parts=2).tolist() == [[32, 112, 9], [8, 32, 4]]
    assert batch_needs(all_sizes, batches, parts=1).tolist() == [[40, 144, 9], [8, 32, 4]]


def test_few_shapes_hold_every_batch_and_save_work():
    s = sizes(400)
    needs = np.concatenate([batch_needs(s, split_batches(epoch_order(400, 0, e), 4), parts=1) for e in range(30)])
    shapes = choose_capacities(needs, structures=4)
    assert 1 < len(shapes) <= MAX_SHAPES
    assert all(shapes[-1].holds(Capacity(4, *need)) for need in needs)
    assert all(larger.holds(smaller) for smaller, larger in pairwise(shapes))


def test_alike_batches_or_a_short_training_get_one_shape():
    alike = np.tile([72, 480, 20], (5000, 1))
    assert choose_capacities(alike, structures=4) == [Capacity(4, 72, 480, 20)]
    short = batch_needs(sizes(40), split_batches(np.arange(40), 4), parts=1)
    assert len(choose_capacities(short, structures=4)) == 1
