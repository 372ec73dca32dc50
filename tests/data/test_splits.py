"""Splits by blocks of time and at random."""

import numpy as np
import pytest

from forgefield.data.splits import split_frames
from forgefield.errors import UserError

FRACTIONS = {"train": 0.8, "valid": 0.1, "test": 0.1}


def test_blocks_follow_the_order_of_the_source():
    parts = split_frames(10, "blocks", FRACTIONS, seed=0)
    assert {part: frames.tolist() for part, frames in parts.items()} == {
        "train": [0, 1, 2, 3, 4, 5, 6, 7],
        "valid": [8],
        "test": [9],
    }


def test_counts_leave_the_rest_unused():
    parts = split_frames(100, "blocks", {"train": 20, "valid": 5, "test": 0.1}, seed=0)
    assert [(x[0], x[-1], len(x)) for x in parts.values()] == [(0, 19, 20), (20, 24, 5), (25, 34, 10)]


@pytest.mark.parametrize("n_frames", [10, 11, 203, 999, 1001])
@pytest.mark.parametrize("method", ["blocks", "random"])
def test_fractions_that_add_up_to_one_use_every_frame_once(n_frames, method):
    parts = split_frames(n_frames, method, FRACTIONS, seed=3)
    np.testing.assert_array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(n_frames))


def test_random_depends_on_the_seed_alone():
    first, again, other = (split_frames(500, "random", FRACTIONS, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first["test"], again["test"])
    assert set(first["test"]) != set(other["test"])
    assert np.all(np.diff(first["train"]) > 0)
    assert first["valid"].max() > 400 > 100 > first["valid"].min()


def test_larger_than_the_data():
    with pytest.raises(UserError, match=r"split larger than the data: train 400, valid 50, test 51, but 500 frames"):
        split_frames(500, "random", {"train": 400, "valid": 50, "test": 51}, seed=0)


def test_a_part_without_a_frame():
    with pytest.raises(UserError, match=r"leaves test without a frame: train 0.8, valid 0.1, test 0.1 of 4 usable"):
        split_frames(4, "blocks", FRACTIONS, seed=0)
