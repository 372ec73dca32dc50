import numpy as np
import pytest

from forgefield.evaluation.quantiles import Quantiles

SHARES = (0.0, 0.25, 0.5, 0.95, 1.0)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1001])
@pytest.mark.parametrize("kind", ["spread", "equal", "far", "zeros"])
def test_numpy_finds_the_same(n, kind):
    rng = np.random.default_rng(n)
    values = {
        "spread": 10.0 ** rng.uniform(-25, 25, n),  # beyond the outermost bins on both sides
        "equal": np.full(n, 0.3),
        "far": np.where(rng.random(n) < 0.5, 1e-3, 7.0),
        "zeros": np.maximum(rng.normal(size=n), 0.0),
    }[kind]
    quantiles = Quantiles(SHARES)
    for method in (quantiles.count, quantiles.keep):
        for chunk in np.array_split(np.concatenate([values, [np.nan]]), 4):
            method(chunk)
    assert quantiles.result() == pytest.approx(np.quantile(values, SHARES), rel=1e-14)


def test_few_values_are_kept():
    values = np.abs(np.random.default_rng(0).normal(size=100_000))
    quantiles = Quantiles((0.5, 0.95))
    quantiles.count(values)
    quantiles.keep(values)
    assert 0 < quantiles.held < 8_000


def test_of_equal_values_one_is_kept():
    """Such as errors of forces that symmetry makes zero, which are half of those of a flat molecule."""
    values = np.concatenate([np.zeros(60_000), np.random.default_rng(0).uniform(1, 2, 60_000)])
    quantiles, most = Quantiles((0.25, 0.5, 0.95)), 0
    for method in (quantiles.count, quantiles.keep):
        for chunk in np.array_split(np.repeat(values, 4), 16):
            method(chunk)
            most = max(most, quantiles.held)
    assert quantiles.result() == pytest.approx(np.quantile(np.repeat(values, 4), (0.25, 0.5, 0.95)), rel=1e-14)
    assert most < 120_000  # of 480,000


def test_nothing_has_no_quantiles():
    quantiles = Quantiles((0.5,))
    quantiles.count(np.array([np.nan]))
    quantiles.keep(np.array([np.nan]))
    assert quantiles.result() is None
