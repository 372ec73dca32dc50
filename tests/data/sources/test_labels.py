"""Which keys are taken for which labels."""

import numpy as np
import pytest

from forgefield.config.dataset import Keys
from forgefield.data.sources import RawFrame
from forgefield.data.sources.labels import LabelKeys
from forgefield.errors import UserError


def frame(*keys):
    return RawFrame(np.ones(1, int), np.zeros((1, 3)), np.zeros((3, 3)), np.zeros(3, bool), dict.fromkeys(keys, 1.0))


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
    assert found("virial", "stress") == {"virial": "virial"}


def test_a_source_does_not_change_its_key_half_way():
    labels = LabelKeys(Keys())
    labels.pick(frame("dft_energy"), "a.xyz, frame 0")
    with pytest.raises(
        UserError, match=r"a.xyz, frame 1: energy may be energy or dft_energy; say which by keys.energy"
    ):
        labels.pick(frame("energy"), "a.xyz, frame 1")


def test_what_is_not_read_is_listed():
    labels = LabelKeys(Keys())
    assert labels.pick(frame("energy", "dipole"), "a.xyz, frame 0") == {"energy": 1.0}
    assert labels.pick(frame("charge"), "a.xyz, frame 1") == {}
    assert labels.unused == ["charge", "dipole"]
