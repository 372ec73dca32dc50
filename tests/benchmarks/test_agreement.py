"""No row is timed whose two sides differ."""

import numpy as np
import pytest
from agreement import DisagreementError, differences

THEIRS = {"energy": np.array([2.0, -4.0]), "forces": np.full((3, 3), 0.5), "gradient/w": np.array([1e-3, 0.0])}


def changed(name: str, by: float) -> dict[str, np.ndarray]:
    return THEIRS | {name: THEIRS[name] + by}


def test_differences_are_relative_to_the_largest_value():
    found = differences(changed("energy", 4e-9), THEIRS, "float64")
    assert found["energy"] == pytest.approx(1e-9, rel=1e-3)
    assert found["forces"] == found["gradient"] == 0.0


def test_forces_in_float32_are_compared_in_their_unit():
    assert differences(changed("forces", 5e-5), THEIRS, "float32")["forces"] == pytest.approx(5e-5)


@pytest.mark.parametrize(
    ("name", "by", "precision"),
    [
        ("energy", 1e-7, "float64"),
        ("forces", 2e-4, "float32"),
        ("gradient/w", 1e-10, "float64"),
        ("energy", np.nan, "float32"),
    ],
)
def test_a_larger_difference_is_refused_by_name(name, by, precision):
    with pytest.raises(DisagreementError, match=name):
        differences(changed(name, by), THEIRS, precision)


def test_arrays_of_one_side_only_are_refused():
    with pytest.raises(DisagreementError, match="gradient/w"):
        differences({k: v for k, v in THEIRS.items() if k != "gradient/w"}, THEIRS, "float64")
