"""Rows are shared out to processes, each once."""

import numpy as np
import pytest

from forgefield.data.processes import OneProcess, share


@pytest.mark.parametrize("n", [0, 1, 5, 100])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("work", [None, "growing"])
def test_each_row_is_in_one_share(n, count, work):
    work = None if work is None else np.arange(1, n + 1)
    shares = [share(n, OneProcess(i, count), work) for i in range(count)]
    assert [row for rows in shares for row in rows] == list(range(n))


def test_shares_are_of_the_same_work():
    sizes = np.sort(np.random.default_rng(0).integers(1, 301, 1000))
    work = [sizes[share(1000, OneProcess(i, 4), sizes)].sum() for i in range(4)]
    assert max(work) - min(work) < 2 * 301
