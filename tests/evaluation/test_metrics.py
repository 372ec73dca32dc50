"""Running sums against numpy on the whole arrays."""

import numpy as np
import pytest

from forgefield.evaluation.metrics import ErrorSums


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_chunks_give_what_numpy_gives_on_everything(chunk):
    rng = np.random.default_rng(1)
    reference = rng.normal(-4.2e4, 0.3, 501)  # totals of an all-electron method: large mean, small spread
    predicted = reference + rng.normal(0.01, 0.05, 501)
    sums = ErrorSums()
    for start in range(0, 501, chunk):
        sums.add(reference[start : start + chunk], predicted[start : start + chunk])
    error = predicted - reference
    expected = {
        "n": 501,
        "absent": 0,
        "mae": np.abs(error).mean(),
        "rmse": np.sqrt((error**2).mean()),
        "r2": 1 - (error**2).sum() / ((reference - reference.mean()) ** 2).sum(),
        "max": np.abs(error).max(),
    }
    assert sums.result() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_sums_of_parts_joined_in_order_are_the_sums_of_all(parts):
    """To 12 digits, for total energies too; some parts are empty."""
    rng = np.random.default_rng(2)
    reference = rng.normal(-6.2e3, 0.1, 7)
    predicted = reference + rng.normal(0.0, 0.05, 7)
    whole, joined = ErrorSums(), ErrorSums()
    whole.add(reference, predicted)
    for rows in np.array_split(np.arange(7), parts):
        part = ErrorSums()
        part.add(reference[rows], predicted[rows])
        joined.join(part)
    assert joined.result() == pytest.approx(whole.result(), rel=1e-13)


def test_absent_labels_are_counted_apart():
    sums = ErrorSums()
    sums.add(np.array([[1.0, 2.0, 3.0], [np.nan] * 3]), np.array([[1.5, 2.0, 2.0], [9.0] * 3]))
    result = sums.result()
    assert (result["n"], result["absent"]) == (3, 3)
    assert result["mae"] == pytest.approx(0.5)
    assert result["max"] == 1.0


def test_nothing_to_average_is_none_and_not_nan():
    sums = ErrorSums()
    sums.add(np.array([np.nan]), np.array([1.0]))
    assert sums.result() == {"n": 0, "absent": 1, "mae": None, "rmse": None, "r2": None, "max": None}


def test_r2_of_a_constant_reference_is_none():
    sums = ErrorSums()
    sums.add(np.full(3, 2.0), np.array([1.0, 2.0, 3.0]))
    assert sums.result()["r2"] is None


@pytest.mark.parametrize("chunks", [[[1.0, np.nan], [2.0, 3.0]], [[1.0, 2.0], [np.nan, 3.0]]])
def test_a_prediction_that_is_no_number_stays_one(chunks):
    sums = ErrorSums()
    for predicted in chunks:
        sums.add(np.zeros(2), np.array(predicted))
    assert all(np.isnan(sums.result()[name]) for name in ("mae", "rmse", "max"))
