"""Statistics files that are not what they should be; what is taken from a sound one is in test_compute.py."""

import json

import pytest

from forgefield.errors import UserError
from forgefield.statistics import apply_statistics

UNITS = {"energy": "eV", "forces": "eV/angstrom", "length": "angstrom"}
SHIFTS = {"H": 0.0, "C": -1.0, "O": -2.0}
SOUND = {"units": UNITS, "energy_shifts": SHIFTS, "force_rms": None, "neighbors": {"average": 2.0}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "holds a list, expected an object with keys"),
        (json.dumps({k: v for k, v in SOUND.items() if k != "neighbors"}), "neighbors: missing; expected neighbor"),
        (json.dumps(SOUND | {"units": UNITS | {"energy": "kJ/mol"}}), "units.energy: expected 'eV', found 'kJ/mol'"),
        (json.dumps(SOUND | {"units": {}}), "units.energy: missing"),
        (json.dumps({k: v for k, v in SOUND.items() if k != "units"}), "units: missing"),
        (json.dumps(SOUND | {"neighbors": {}}), "neighbors.average: missing"),
        (json.dumps(SOUND | {"neighbors": 3}), "neighbors: expected a section of keys, found 3"),
        (json.dumps(SOUND | {"energy_shifts": {"H": 0.0, "C": "x", "O": 1.0}}), "energy_shifts.C: expected a number"),
        (json.dumps(SOUND | {"energy_shifts": {"Hx": 0.0}}), "energy_shifts: 'Hx' is no chemical symbol"),
        (json.dumps(SOUND | {"energy_shifts": {"C": 0.0}}), "energy_shifts: none for H, O, which the model knows"),
        (json.dumps(SOUND | {"force_rms": float("nan")}), "force_rms: expected"),
    ],
)
def test_a_damaged_file_is_one_line_with_file_key_and_way_out(tmp_path, untrained, text, message):
    (tmp_path / "statistics.json").write_text(text)
    with pytest.raises(UserError) as caught:
        apply_statistics(untrained, tmp_path / "statistics.json")
    found = str(caught.value)
    assert found.startswith(f"{tmp_path}/statistics.json: {message}")
    assert found.endswith("; make it with `forgefield statistics`")
    assert "\n" not in found


def test_a_missing_file_comes_with_what_makes_it(tmp_path, untrained):
    with pytest.raises(UserError, match=r"statistics\.json: no such file; make it with `forgefield statistics`"):
        apply_statistics(untrained, tmp_path / "statistics.json")
