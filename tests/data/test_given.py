import ase.build
import numpy as np
import pytest

from forgefield.data.given import given_structures
from forgefield.data.structures import Structure
from forgefield.errors import UserError


def dimer(**values):
    return Structure(**{"numbers": np.ones(2, int), "positions": np.array([[0.0, 0, 0], [0.7, 0, 0]])} | values)


def test_structures_without_numbers_are_named_by_their_places():
    assert [s.source_index for s in given_structures([dimer(), dimer(), dimer()])] == [0, 1, 2]
    assert [s.source_index for s in given_structures([dimer(source_index=7), dimer(source_index=3)])] == [7, 3]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "item 1 is None; expected a forgefield Structure"),
        ({}, "item 1 is of type dict"),
        (ase.build.molecule("H2"), "item 1 is of type ase.atoms.Atoms"),
        (dimer(numbers=np.ones(0, int), positions=np.zeros((0, 3))), "structure 1 has no atoms"),
        (dimer(forces=np.ones((1, 3))), r"forces of structure 1 has shape \(1, 3\); expected \(2, 3\)"),
        (dimer(forces=np.ones(3)), r"forces of structure 1 has shape \(3,\)"),
        (dimer(positions=[[0, 0, 0], [0.7, 0, 0]]), "positions of structure 1 is of type list; make it a NumPy array"),
        (dimer(numbers=np.ones(3, int)), r"positions of structure 1 has shape \(2, 3\); expected \(3, 3\)"),
        (dimer(energy=np.array([1.0])), r"energy of structure 1 has shape \(1,\); expected \(\)"),
        (dimer(virial=np.zeros(6)), r"virial of structure 1 has shape \(6,\); expected \(3, 3\)"),
    ],
)
def test_what_is_no_structure_is_named(wrong, message):
    with pytest.raises(UserError, match=f"dataset: {message}"):
        given_structures([dimer(), wrong])
