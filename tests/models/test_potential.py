import json
from dataclasses import fields, replace

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


def changed(path, **changes):
    """Write other keys into a model.json; None removes one."""
    content = read_json(path / "model.json") | changes
    write_json(path / "model.json", {key: value for key, value in content.items() if value is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": None}, "config: missing; expected the architecture's own settings"),
        ({"confg": {}}, "confg: unknown key; did you mean config"),
        ({"cutoff": "far"}, "cutoff: expected a number"),
        ({"cutoff": 5.0}, r"cutoff is 5\.0, but config\.r_max is 3\.0"),
        ({"energy_shifts": {"Hx": 1.0}}, "energy_shifts: 'Hx' is no chemical symbol"),
        ({"energy_shifts": {"H": 1.0}}, r"weights\.safetensors: parameter .* has shape"),
    ],
)
def test_a_wrong_key_is_named(saved, changes, message):
    changed(saved, **changes)
    with pytest.raises(UserError, match=message) as caught:
        load_potential(saved)
    assert "import or train the model again" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"r_maxx": 1.0}, r"model\.json: config\.r_maxx: unknown key; did you mean config\.r_max\?"),
        ({"l_max": "two"}, r"model\.json: config\.l_max: expected a whole number"),
        ({"scale": float("nan")}, r"model\.json: config\.scale: expected a finite number"),
        ({"interactions": []}, r"model\.json: config\.interactions has 0 entries, expected 2"),
        ({"n_bessel": 5}, r"weights\.safetensors: parameter .* has shape"),
        ({"pair_repulsion": True}, r"weights\.safetensors: buffer pair_repulsion_fn\.c is missing"),
    ],
)
def test_a_wrong_setting_is_named(saved, changes, message):
    content = read_json(saved / "model.json")
    (saved / "model.json").write_text(json.dumps(content | {"config": content["config"] | changes}))
    with pytest.raises(UserError, match=message) as caught:
        load_potential(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_a_damaged_description_is_named(saved, text):
    (saved / "model.json").write_text(text)
    with pytest.raises(UserError, match=r"model\.json: (not JSON|holds a \w+)"):
        load_potential(saved)


@pytest.mark.parametrize("name", ["readouts.0.linear.weight", "radial_embedding.bessel_fn.prefactor"])
def test_weights_that_are_no_numbers_are_named(potential, tmp_path, name):
    kind = "parameters" if name in potential.parameters else "buffers"
    arrays = getattr(potential, kind)
    lost = replace(potential, **{kind: dict(arrays) | {name: np.full_like(arrays[name], np.inf)}})
    save_potential(lost, tmp_path / "model")
    with pytest.raises(UserError, match=rf"{kind[:-1]} {name} is NaN or infinite"):
        load_potential(tmp_path / "model")
