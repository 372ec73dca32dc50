"""Damage that leaves every number a plausible one."""

import numpy as np
import pytest

from forgefield.data.store.checksums import RowChecksums

ROWS = np.arange(4)


@pytest.fixture(params=[3, 300], ids=["small", "large"])
def columns(request):
    random = np.random.default_rng(0)
    return {"R": random.normal(size=(4, request.param, 3)), "species": random.integers(1, 9, (4, 7)).astype(np.uint8)}


def sums(columns, rows=ROWS):
    return RowChecksums({key: (values.shape[1:], values.dtype) for key, values in columns.items()})(rows, columns)


def test_a_row_has_one_sum_wherever_it_is_read(columns):
    picked = {key: values[[2, 0]] for key, values in columns.items()}
    np.testing.assert_array_equal(sums(picked, np.array([2, 0])), sums(columns)[[2, 0]])


def test_rows_in_each_others_place_are_seen(columns):
    swapped = {key: values[[1, 0, 2, 3]] for key, values in columns.items()}
    assert (sums(swapped) != sums(columns)[[1, 0, 2, 3]]).tolist() == [True, True, False, False]


def test_numbers_in_each_others_place_are_seen(columns):
    before = sums(columns)
    columns["R"][2, [0, 1]] = columns["R"][2, [1, 0]]
    assert (sums(columns) != before).tolist() == [False, False, True, False]


def test_zeros_are_no_valid_rows(columns):
    assert sums({key: np.zeros_like(values) for key, values in columns.items()}).all()
