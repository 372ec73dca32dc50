"""Splits by blocks of time, at random, stratified and by groups."""

import numpy as np
import pytest

from forgefield.data.splits import PARTS, split_frames, split_groups, split_stratified
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


@pytest.mark.parametrize("shares", [FRACTIONS, {"train": 100, "valid": 20, "test": 30}])
def test_stratified_parts_have_the_same_proportions(shares):
    random = np.random.default_rng(0)
    strata = random.choice(3, 1000, p=[0.6, 0.35, 0.05])
    sizes = np.where(strata == 0, 3, random.integers(5, 60, 1000))
    parts = split_stratified(strata, sizes, shares, seed=1)
    assert [len(parts[part]) for part in PARTS] == ([800, 100, 100] if shares is FRACTIONS else [100, 20, 30])
    assert len(np.unique(np.concatenate(list(parts.values())))) == sum(map(len, parts.values()))
    for frames in parts.values():
        expected = np.bincount(strata) / 1000 * len(frames)
        assert np.abs(np.bincount(strata[frames], minlength=3) - expected).max() <= 2
        assert np.mean(sizes[frames]) == pytest.approx(np.mean(sizes), rel=0.12)


def test_stratified_depends_on_the_seed_alone():
    strata, sizes = np.arange(100) % 3, np.full(100, 5)
    first, again, other = (split_stratified(strata, sizes, FRACTIONS, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first["test"], again["test"])
    assert set(first["test"]) != set(other["test"])


def test_groups_stay_together_near_their_shares():
    groups = np.random.default_rng(0).integers(0, 40, 1000)
    parts = split_groups(groups, "composition", FRACTIONS, seed=0)
    members = [set(groups[frames]) for frames in parts.values()]
    assert sum(map(len, members)) == 40 == len(set.union(*members))
    assert sum(map(len, parts.values())) == 1000
    assert [len(parts[part]) for part in PARTS] == pytest.approx([800, 100, 100], abs=20)


@pytest.mark.parametrize("sizes", [[33, 33, 33], [80, 5, 15], [1, 1, 98], [50, 30, 5, 5, 5, 5]])
def test_no_part_stays_empty(sizes):
    parts = split_groups(np.repeat(np.arange(len(sizes)), sizes), "file", FRACTIONS, seed=0)
    assert min(map(len, parts.values())) > 0
    assert len(parts["train"]) == max(map(len, parts.values()))


def test_groups_beyond_the_counts_are_unused():
    parts = split_groups(np.arange(100) // 5, "file", {"train": 20, "valid": 10, "test": 10}, seed=0)
    assert [len(parts[part]) for part in PARTS] == [20, 10, 10]


def test_too_few_groups():
    with pytest.raises(UserError, match=r"split.by: file makes 2 group\(s\), too few for 3 parts; choose another"):
        split_groups([0, 0, 1, 1], "file", FRACTIONS, seed=0)
