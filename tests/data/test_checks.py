"""What no calculation can have given is refused."""

from dataclasses import replace

import ase.build
import numpy as np
import pytest

from forgefield.data.checks import check_structure
from forgefield.data.structures import Structure
from forgefield.errors import UserError


@pytest.fixture
def ethanol():
    """The energy is the real all-electron one, the forces those of a molecule at room temperature."""
    atoms = ase.build.molecule("CH3CH2OH")
    forces = np.random.default_rng(0).normal(size=(9, 3))
    return Structure(atoms.numbers, atoms.positions, energy=-4209.6, forces=forces)


@pytest.mark.parametrize(
    "structure",
    [
        Structure(np.array([1, 1]), np.array([[0, 0, 0], [0, 0, 0.74]])),
        Structure(np.array([6]), np.zeros((1, 3)), np.eye(3) * 2, np.ones(3, bool)),
        Structure(np.array([6]), np.zeros((1, 3)), np.diag([2.0, 2.0, 0.0]), np.array([True, True, False])),
        # 0.02 of a long cell vector, but 0.4 Å apart
        Structure(np.array([1, 1]), np.array([[0, 0, 0], [0, 0, 0.4]]), np.diag([1.0, 1, 20]), np.ones(3, bool)),
        Structure(np.array([1, 1]), np.array([[0, 0, 0], [3.0, 0, 0]]), np.eye(3) * 3, np.zeros(3, bool)),
    ],
    ids=["molecule", "one atom in a cell", "slab without a third vector", "long cell", "cell without periodicity"],
)
def test_possible(structure):
    check_structure(structure, "a.xyz, frame 0")


@pytest.mark.parametrize("field", ["positions", "forces", "energy", "virial", "cell"])
@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.nan, "NaN or infinite"),
        (np.inf, "NaN or infinite"),
        (-np.inf, "NaN or infinite"),
        (-1e200, r"-1e\+200, beyond all measure,"),
    ],
)
def test_not_finite(ethanol, field, value, found):
    arrays = {"positions": ethanol.positions, "forces": ethanol.forces, "virial": np.eye(3), "cell": np.eye(3)}
    broken = value
    if field in arrays:
        broken = arrays[field].copy()
        broken[2, 1] = value
    where = " at atom 2" if field in ("positions", "forces") else ""
    with pytest.raises(UserError, match=f"^a.xyz, frame 7: {field} {found}{where}; remove or repair"):
        check_structure(replace(ethanol, **{field: broken}), "a.xyz, frame 7")


SKEWED = np.array([[5.0, 0, 0], [4.0, 4.5, 0], [-2.0, 3.0, 6.0]])


@pytest.mark.parametrize(
    ("positions", "cell", "pbc"),
    [
        ([[1, 2, 3], [0, 0, 0], [1, 2, 3]], np.zeros((3, 3)), (False, False, False)),
        ([[1, 2, 3], [0, 0, 0], [1, 2, 3.004]], SKEWED, (True, True, True)),
        ([[1, 2, 3], [0, 0, 0], [1, 2, 3] + 2 * SKEWED[0] - SKEWED[2]], SKEWED, (True, True, True)),
        ([[0, 0, -1e-12], [1, 1, 1], SKEWED[1]], SKEWED, (True, True, False)),
    ],
    ids=["molecule", "nearly", "periodic image", "slab, across the edge"],
)
def test_two_atoms_on_one_point(positions, cell, pbc):
    structure = Structure(np.array([1, 1, 1]), np.array(positions, float), cell, np.array(pbc))
    with pytest.raises(UserError, match="frame 7: atoms 0 and 2 are on one point"):
        check_structure(structure, "a.xyz, frame 7")


def test_no_element():
    with pytest.raises(UserError, match="atom 1 is of no element"):
        check_structure(Structure(np.array([1, 0]), np.eye(3)[:2]), "a.xyz, frame 0")


@pytest.mark.parametrize("cell", [np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 1, 0])])
def test_periodic_without_a_volume(cell):
    with pytest.raises(UserError, match="periodic along a direction without a cell vector"):
        check_structure(Structure(np.array([1]), np.zeros((1, 3)), cell, np.ones(3, bool)), "a.xyz, frame 0")
