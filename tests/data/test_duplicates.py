"""Repeated frames, and frames that leak from one part of a split into another."""

from dataclasses import replace

import numpy as np
import pytest

from forgefield.data.duplicates import Fingerprints, fingerprints, warnings_about
from forgefield.data.joined import Joined
from forgefield.data.structures import Structure


@pytest.fixture
def structures():
    positions, cell, pbc = np.random.default_rng(0).normal(size=(8, 3, 3)), np.eye(3) * 9, np.ones(3, bool)
    return [Structure(np.array([8, 1, 1]), r, cell, pbc) for r in positions]


def repeated(structures, parts=None, indices=None):
    known = Fingerprints()
    for structure in structures:
        known.add(fingerprints(Joined([structure])))
    indices = np.arange(len(structures)) if indices is None else indices
    return known.repeated(indices, parts or {"train": np.arange(len(structures))})


def test_none(structures):
    found = repeated(structures)
    assert found == {"count": 0, "groups": [], "between_parts": {}}
    assert warnings_about(found) == []


def test_repetitions_are_named_by_their_frames(structures):
    structures[3] = structures[6] = structures[1]
    structures[7] = structures[2]
    found = repeated(structures, indices=10 * np.arange(8))
    assert found == {"count": 3, "groups": [[10, 30, 60], [20, 70]], "between_parts": {}}
    assert warnings_about(found) == ["3 frames repeat an earlier one (frame 30 is frame 10)"]


def test_leaks_between_parts(structures):
    structures[3] = structures[6] = structures[1]
    parts = {"train": np.array([0, 1, 2, 3]), "valid": np.array([4, 5]), "test": np.array([6, 7])}
    found = repeated(structures, parts)
    assert found["between_parts"] == {"train and test": {"count": 1, "frames": [[1, 6]]}}
    (line,) = warnings_about(found)
    assert line.endswith("the same frames are in two parts of the split: 1 in train and test (frames 1 and 6)")


def test_the_same_with_other_digits_and_signs_of_zero(structures):
    again = replace(structures[0], positions=structures[0].positions + 1e-8)
    assert repeated([structures[0], again])["count"] == 1
    zero = replace(structures[0], positions=np.zeros((3, 3)))
    assert repeated([zero, replace(zero, positions=-np.zeros((3, 3)))])["count"] == 1


@pytest.mark.parametrize(
    "other",
    [
        {"positions": np.full((3, 3), 0.5)},
        {"numbers": np.array([1, 8, 1])},
        {"cell": np.eye(3) * 8.99},
        {"pbc": np.array([True, True, False])},
    ],
    ids=lambda other: next(iter(other)),
)
def test_what_makes_a_frame_another(structures, other):
    assert repeated([structures[0], replace(structures[0], **other)])["count"] == 0


def test_the_order_in_memory_does_not_matter(structures):
    columns = replace(structures[0], positions=np.asfortranarray(structures[0].positions))
    assert repeated([structures[0], columns])["count"] == 1
