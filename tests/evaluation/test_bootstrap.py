"""Intervals against scipy's bootstrap, and against what theory says of a mean."""

import numpy as np
import pytest
import scipy.stats

from forgefield.evaluation.bootstrap import BLOCKS, blocks_of, draws, intervals
from forgefield.evaluation.sums import ErrorSums, items_of


def sums_of(error):
    blocks = blocks_of(len(error))
    sums = ErrorSums(1, blocks.max() + 1)
    sums.add(items_of(error), np.zeros(len(error), int), blocks)
    return sums


def test_scipy_finds_about_the_same():
    error = np.random.default_rng(1).normal(size=(150, 1))
    [(mae, rmse)] = intervals(sums_of(error), draws(150))
    for found, statistic in ((mae, lambda x: np.abs(x).mean()), (rmse, lambda x: np.sqrt((x**2).mean()))):
        other = scipy.stats.bootstrap((error[:, 0],), statistic, method="percentile", vectorized=False, rng=0)
        width = other.confidence_interval.high - other.confidence_interval.low
        assert found == pytest.approx([*other.confidence_interval], abs=0.12 * width)


def test_blocks_of_many_structures_are_as_wide_as_theory():
    """The mean of n independent values is off by 1.96 of their deviation over the root of n."""
    n = 20 * BLOCKS
    error = np.random.default_rng(2).exponential(size=(n, 1))
    [((low, high), _)] = intervals(sums_of(error), draws(n))
    assert high - low == pytest.approx(2 * 1.96 * error.std() / np.sqrt(n), rel=0.1)
    assert low < error.mean() < high


def test_blocks_are_consecutive_and_even():
    blocks = blocks_of(2500)
    assert (np.diff(blocks) >= 0).all()
    assert set(np.bincount(blocks)) == {2, 3}
    assert len(np.bincount(blocks)) == BLOCKS
    np.testing.assert_array_equal(blocks_of(4), range(4))


def test_drawings_are_the_same_every_time():
    np.testing.assert_array_equal(draws(30), draws(30))
    assert (draws(30).sum(axis=1) == 30).all()


def test_one_structure_has_no_interval():
    assert intervals(sums_of(np.ones((1, 3))), draws(1)) == [(None, None)]


def test_resamples_without_a_value_of_a_rare_part_say_nothing_of_it():
    """Of two structures among fifty, a third of the resamples has one alone, and a seventh has none."""
    sums = ErrorSums(2, 50)
    rare = np.where(np.isin(np.arange(50), (3, 40)), 1, 0)
    error = np.where(np.arange(50) == 3, 2.0, 1.0)[:, None]
    sums.add(items_of(error), rare, blocks_of(50))
    assert intervals(sums, draws(50))[1] == ([1.0, 2.0], [1.0, 2.0])
