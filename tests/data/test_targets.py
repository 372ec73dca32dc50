import numpy as np
import pytest

from forgefield.data.structures import Structure
from forgefield.data.targets import Targets
from forgefield.errors import UserError


def dimer(energy=1.0, **extra):
    return Structure(np.ones(2, int), np.eye(3)[:2], energy=energy, energy_weight=7.0, extra=extra)


def test_values_that_are_read():
    targets = Targets(("dipole", "quadrupole"), {"dipole": "w", "U": "w", "F": "v"})
    assert targets.required == ("dipole", "quadrupole", "w", "v")
    assert targets.optional == ("quadrupole_weight",)
    weights = ("w", "v", "quadrupole_weight")
    assert [key for key in (*targets.required, *targets.optional) if targets.is_weight(key)] == list(weights)


def test_weights_take_their_places():
    targets = Targets(("dipole",), {"U": "w"})
    made = targets.labelled(dimer(dipole=[1, 2, 3], w=0.5, note="kept by the source only"), "here")
    assert (made.energy, made.energy_weight) == (1.0, 0.5)
    assert made.extra.keys() == {"dipole", "dipole_weight"}
    assert made.extra["dipole_weight"] == 1.0
    made = targets.labelled(dimer(dipole=[1, np.nan, 3], dipole_weight=0, w=0), "here")
    assert made.energy is None
    np.testing.assert_array_equal(made.extra["dipole"], np.zeros(3))


def test_a_source_of_ones_own_must_give_what_is_asked_for():
    with pytest.raises(UserError, match="here: no value 'dipole' in extra"):
        Targets(("dipole",)).labelled(dimer(), "here")


def test_places_without_a_structure_have_the_weight_0():
    targets = Targets(("dipole", "gap"))
    structures = [targets.labelled(dimer(dipole=np.full(3, i), gap=i, gap_weight=2), "here") for i in (1.0, 2.0)]
    packed = targets.packed([*structures, targets.absent(structures[0])], 4, np.dtype(np.float32))
    assert packed["dipole"].value.dtype == packed["gap"].weight.dtype == np.float32
    np.testing.assert_array_equal(packed["dipole"].value[:, 0], [1, 2, 1, 0])
    np.testing.assert_array_equal(packed["dipole"].weight, [1, 1, 0, 0])
    np.testing.assert_array_equal(packed["gap"].value, [1, 2, 1, 0])
    np.testing.assert_array_equal(packed["gap"].weight, [2, 2, 0, 0])
    assert targets.absent(structures[0]).energy is None
