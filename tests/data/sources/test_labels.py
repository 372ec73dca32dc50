"""Which keys are taken for which labels."""

from dataclasses import replace

import numpy as np
import pytest

from forgefield.config.dataset import Keys
from forgefield.data.sources import RawFrame
from forgefield.data.sources.labels import LabelKeys
from forgefield.errors import UserError


def frame(*keys, **values):
    values = dict.fromkeys(keys, 1.0) | values
    return RawFrame(np.ones(1, int), np.zeros((1, 3)), np.zeros((3, 3)), np.zeros(3, bool), values)


def found(*keys, **named):
    labels = LabelKeys(Keys(**named))
    labels.pick(frame(*keys), "a.xyz, frame 0")
    return labels.found


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("energy", "energy"),
        ("Energy", "energy"),
        ("energies", "energy"),
        ("E", "energy"),
        ("dft_energy", "energy"),
        ("energy_xtb", "energy"),
        ("REF_ENERGY", "energy"),
        ("total_energy", "energy"),
        ("forces", "forces"),
        ("force", "forces"),
        ("F", "forces"),
        ("ref_forces", "forces"),
        ("dft_stress", "stress"),
        ("virials", "virial"),
        ("free_energy", None),
        ("energy_per_atom", None),
        ("interaction_energy", None),
        ("elec_energy_tol", None),
        ("initial_magmoms", None),
        ("xtb", None),
        ("gradient", None),
    ],
)
def test_what_a_key_is_taken_for(key, label):
    assert found(key) == ({label: key} if label else {})


def test_the_standard_name_comes_first():
    assert found("xtb_energy", "energy", "Energy") == {"energy": "energy"}


def test_a_named_key_comes_before_all():
    assert found("energy", "xtb_energy", energy="xtb_energy") == {"energy": "xtb_energy"}


def test_naming_the_stress_leaves_the_virial_alone():
    assert found("virial", "stress", stress="stress") == {"stress": "stress"}
    assert found("virial", "stress", virial="virial") == {"virial": "virial"}
    assert found("virial", "stress") == {"virial": "virial", "stress": "stress"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"energy": -5.0, "Energy": -5.1}, "energy may be energy or Energy, which differ; say which by keys.energy"),
        (
            {"force": np.zeros((1, 3)), "F": np.full((1, 3), 1e-3)},
            "forces may be F or force, which differ; say which by keys.forces",
        ),
        ({"energy": -5.0, "E": "low"}, "energy may be energy or E, which differ"),
    ],
)
def test_keys_of_one_label_hold_the_same_numbers(values, message):
    labels = LabelKeys(Keys())
    labels.pick(frame(**{key: values[next(iter(values))] for key in values}), "a.xyz, frame 0")
    with pytest.raises(UserError, match=f"a.xyz, frame 1: {message}"):
        labels.pick(frame(**values), "a.xyz, frame 1")


def test_energies_of_atoms_are_not_compared_with_that_of_all():
    atoms = RawFrame(np.ones(2, int), np.eye(3)[:2], np.zeros((3, 3)), np.zeros(3, bool), {})
    labels = LabelKeys(Keys())
    for values in ({"energy": -2.0, "energies": np.array([-1.5, -0.5])}, {"energies": np.ones(2)}):
        labels.pick(replace(atoms, values=values), "a.xyz, frame 0")


def test_the_same_number_with_other_digits():
    labels = LabelKeys(Keys())
    assert labels.pick(frame(energy=-5.123456, Energy=-5.12345649), "a.xyz, frame 0") == {"energy": -5.123456}


@pytest.mark.parametrize(
    ("first", "then"), [("dft_energy", "energy"), ("energy", "Energy"), ("xtb_energy", "energy_dft")]
)
def test_a_source_does_not_change_its_key_half_way(first, then):
    labels = LabelKeys(Keys())
    labels.pick(frame(first), "a.xyz, frame 0")
    message = f"a.xyz, frame 1: energy may be {then}, but is {first} in frames before; say which by keys.energy"
    with pytest.raises(UserError, match=message):
        labels.pick(frame(then), "a.xyz, frame 1")


def test_copies_that_find_other_keys_side_by_side_are_adopted():
    """As the processes do that read pieces of a file; a key of its own in each frame changes nothing."""
    known = LabelKeys(Keys())
    first, second, third = (known.fresh() for _ in range(3))
    first.pick(frame("energy", "Energy", "run-1"), "a.xyz, frame 0")
    second.pick(frame("energy", "E", "forces", "run-2"), "a.xyz, frame 1")
    third.pick(frame("Energy"), "a.xyz, frame 2")
    for copy in (first, second):
        assert known.agrees(copy)
        known.adopt(copy)
    assert known.found == {"energy": "energy", "forces": "forces"}
    assert known.unused == ["E", "Energy", "run-1", "run-2"]
    assert not known.agrees(third)  # by itself it takes another key
    for other in ("E", "Energy"):
        with pytest.raises(UserError, match=f"energy may be energy or {other}, which differ"):
            known.fresh().pick(frame(**{"energy": 1.0, other: 2.0}), "a.xyz, frame 3")


def test_what_is_not_read_is_listed():
    labels = LabelKeys(Keys())
    assert labels.pick(frame("energy", "dipole"), "a.xyz, frame 0") == {"energy": 1.0}
    assert labels.pick(frame("charge"), "a.xyz, frame 1") == {}
    assert labels.unused == ["charge", "dipole"]
