from itertools import pairwise

import numpy as np
import pytest

from forgefield.data.dynamic_batches import even_batches, even_shares, relative_work, within_limit
from forgefield.data.plans import Sizes


def skewed(n, seed=0):
    """Work of structures of which few are much larger than most."""
    random = np.random.default_rng(seed)
    atoms = np.ceil(np.exp(random.normal(3.0, 0.7, n))).astype(int)
    return relative_work(Sizes(atoms, (atoms * random.uniform(5, 30, n)).astype(int), np.zeros(0)))


def batches_of(work, batch, limit, epoch=0):
    order = np.random.default_rng([1, epoch]).permutation(len(work))
    return even_batches(work, order, -(-len(work) // batch), limit, np.random.default_rng([2, epoch]))


def peak(work, rows):
    return work[rows].sum(axis=0).max()


def next_fit(work, limit):
    """How many batches one gets by filling each until the next structure exceeds the limit."""
    count, filled = 1, np.zeros(2)
    for row in np.random.default_rng(0).permutation(len(work)):
        filled = filled + work[row]
        if filled.max() > limit:
            count, filled = count + 1, work[row]
    return count


def test_work_is_relative_to_the_mean():
    sizes = Sizes(np.array([1, 3, 5]), np.array([0, 10, 20]), np.zeros(0))
    np.testing.assert_allclose(relative_work(sizes), [[1 / 3, 0], [1, 1], [5 / 3, 2]])
    assert not relative_work(sizes._replace(pairs=np.zeros(3, int)))[:, 1].any()


@pytest.mark.parametrize(("n", "batch"), [(1, 8), (7, 8), (100, 1), (1000, 8), (1001, 30)])
def test_every_structure_is_in_one_batch(n, batch):
    work = skewed(n)
    found = batches_of(work, batch, 1.1 * batch)
    assert sorted(np.concatenate(found)) == list(range(n))
    assert len(found) == -(-n // batch)
    assert all(len(rows) for rows in found)


@pytest.mark.parametrize("batch", [8, 30])
def test_batches_are_even(batch):
    work = skewed(2000)
    found = batches_of(work, batch, 1.1 * batch)
    peaks = np.array([peak(work, rows) for rows in found])
    assert peaks.max() < 1.1 * batch
    assert peaks.std() < 0.03 * batch
    shuffled = np.random.default_rng(0).permutation(2000)
    assert np.std([peak(work, rows) for rows in np.split(shuffled, range(batch, 2000, batch))]) > 0.1 * batch


def test_next_fit_needs_more_batches_within_the_same_limit():
    work = skewed(2000)
    found = batches_of(work, 8, 8.8)
    within = sum(len(within_limit(work, rows, 8.8)) for rows in found)
    assert within == 250
    assert next_fit(work, 8.8) > 1.05 * within


def test_a_structure_beyond_the_limit_goes_alone():
    work = skewed(200)
    work[17], work[18] = [3.0, 40.0], [40.0, 3.0]
    found = batches_of(work, 8, 8.8)
    assert {tuple(rows) for rows in found if {17, 18} & set(rows)} == {(17,), (18,)}
    assert sorted(np.concatenate(found)) == list(range(200))


def test_more_batches_where_the_limit_asks_for_them():
    work = np.ones((40, 2))
    assert len(batches_of(work, 40, 10.0)) == 4


def test_a_structure_beyond_the_limit_asks_for_no_more_batches():
    work = np.ones((17, 2))
    work[3] = 100.0
    assert sorted(map(len, batches_of(work, 8, 8.8))) == [1, 8, 8]


def test_epochs_differ_in_who_meets_whom():
    for work in (skewed(1000), skewed(40)):
        pairs = []
        for epoch in range(2):
            assert [rows.tolist() for rows in batches_of(work, 5, 6.0, epoch)] == [
                rows.tolist() for rows in batches_of(work, 5, 6.0, epoch)
            ]
            pairs.append({(a, b) for rows in batches_of(work, 5, 6.0, epoch) for a in rows for b in rows if a < b})
        assert len(pairs[0] & pairs[1]) < 0.3 * len(pairs[0])


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_shares_are_even_and_hold_each_structure_once(parts):
    work = skewed(2000)
    found = batches_of(work, 40, 44.0)
    rows, ends = even_shares(work, found, parts, 44.0 / parts)
    assert ends.shape == (50, parts + 1)
    assert ends[0, 0] == 0
    assert ends[-1, -1] == 2000
    assert (ends[1:, 0] == ends[:-1, -1]).all()
    busy = total = 0.0
    for batch, own in zip(found, ends, strict=True):
        assert sorted(rows[own[0] : own[-1]]) == sorted(batch)
        peaks = [peak(work, rows[a:b]) for a, b in pairwise(own)]
        busy, total = busy + sum(peaks), total + parts * max(peaks)
    assert busy / total > {1: 0.999, 2: 0.98, 3: 0.96, 8: 0.85}[parts]


def test_a_share_that_exceeds_the_limit_is_sought_anew(monkeypatch):
    work = skewed(2000)
    found = batches_of(work, 8, 8.8)
    beyond = []
    for attempts in (1, 8):
        monkeypatch.setattr("forgefield.data.dynamic_batches.ATTEMPTS", attempts)
        rows, ends = even_shares(work, found, 2, 4.4)
        beyond.append(sum(peak(work, rows[a:b]) > 4.4 for own in ends for a, b in pairwise(own)))
    assert beyond[1] < 0.7 * beyond[0]


def test_some_parts_are_empty_where_there_are_too_few_structures():
    rows, ends = even_shares(skewed(2), [np.array([1]), np.array([0])], 3, 1.0)
    assert rows.tolist() == [1, 0]
    assert sorted(np.diff(ends[0])) == [0, 0, 1]


def test_within_limit():
    work = np.array([[5.0, 1], [1, 5], [9, 1], [2, 2], [3, 3]])
    assert within_limit(work, np.arange(0), 10.0) == []
    assert [g.tolist() for g in within_limit(work, np.array([0, 1]), 6.0)] == [[0, 1]]
    groups = within_limit(work, np.arange(5), 7.0)
    assert [2] in [g.tolist() for g in groups]  # beyond the limit: alone
    assert sorted(np.concatenate(groups)) == list(range(5))
    assert all(len(g) == 1 or peak(work, g) <= 7.0 for g in groups)
    assert len(groups) == 3
