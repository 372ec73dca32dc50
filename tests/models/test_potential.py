from dataclasses import fields

import numpy as np
import pytest

from forgefield.errors import UserError
from forgefield.files import read_json, write_json
from forgefield.models.potential import load_potential, save_potential


@pytest.fixture
def saved(potential, tmp_path):
    save_potential(potential, tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_potential_returns_with_the_same_bits(potential, saved):
    again = load_potential(saved)
    for field in fields(potential):
        mine, theirs = getattr(again, field.name), getattr(potential, field.name)
        if field.name in ("parameters", "buffers"):
            assert mine.keys() == theirs.keys()
            for name in mine:
                np.testing.assert_array_equal(mine[name], theirs[name], strict=True)
        else:
            assert mine == theirs


def test_everyone_who_may_read_the_description_may_read_the_weights(saved):
    assert (saved / "weights.safetensors").stat().st_mode == (saved / "model.json").stat().st_mode


@pytest.mark.parametrize(
    ("change", "message"), [({"forgefield_format": 99}, "format 99"), ({"units": {"energy": "kJ/mol"}}, "kJ/mol")]
)
def test_another_format_or_other_units_are_refused(saved, change, message):
    write_json(saved / "model.json", read_json(saved / "model.json") | change)
    with pytest.raises(UserError, match=message):
        load_potential(saved)


def test_truncated_weights_are_refused(saved):
    weights = saved / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(UserError, match="not readable"):
        load_potential(saved)


def test_a_directory_without_a_model_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"model\.json is missing"):
        load_potential(tmp_path)
