"""How the rows of a data set are shared by processes."""

from dataclasses import dataclass

import numpy as np
import pytest

from forgefield.data.processes import share, share_by_work


@dataclass
class One:
    """One of several processes."""

    index: int
    count: int


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_large_structures_at_the_end_are_shared_too(count):
    work = np.sort(np.random.default_rng(0).integers(1, 300, 200))
    ranges = [share_by_work(work, One(i, count)) for i in range(count)]
    assert [row for rows in ranges for row in rows] == list(range(200))
    assert all(abs(work[rows].sum() - work.sum() / count) <= work.max() for rows in ranges)


@pytest.mark.parametrize(("n", "count"), [(12, 4), (1, 3)])
def test_equal_structures_are_shared_equally(n, count):
    shares = [len(share_by_work(np.ones(n), One(i, count))) for i in range(count)]
    assert sorted(shares) == sorted(len(share(n, One(i, count))) for i in range(count))
