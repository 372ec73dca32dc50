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
    assert sum(map(len, quantiles._kept)) < 8_000


def test_nothing_has_no_quantiles():
    quantiles = Quantiles((0.5,))
    quantiles.count(np.array([np.nan]))
    quantiles.keep(np.array([np.nan]))
    assert quantiles.result() is None
