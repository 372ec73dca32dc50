"""What may be wrong with a structure is found among many, wherever it is, and nothing is suspected without need."""

from dataclasses import replace

import numpy as np
import pytest

from forgefield.data.checks import check_structure
from forgefield.data.joined import Joined
from forgefield.data.quick_checks import suspects
from forgefield.data.structures import Structure
from forgefield.errors import UserError

SKEWED = np.array([[9.0, 0, 0], [4.0, 8.5, 0], [-2.0, 3.0, 10.0]])


def sound(i, periodic, n=20):
    """Atoms near the points of a grid in a cell of 9 Å, some of them put in another image of the cell."""
    random = np.random.default_rng(i)
    grid = np.stack(np.unravel_index(random.choice(64, n, replace=False), (4, 4, 4)), axis=1)
    positions = (grid + random.uniform(0, 0.5, (n, 3))) / 4 @ SKEWED
    labels = {"energy": -1.0, "forces": random.normal(size=(n, 3)), "virial": np.eye(3)}
    if not periodic:
        return Structure(np.full(n, 6), positions, **labels)
    positions += random.integers(-2, 3, (n, 3)) @ SKEWED
    return Structure(np.full(n, 6), positions, SKEWED, np.ones(3, bool), **labels)


def changed(structure, field, place, value):
    array = getattr(structure, field).astype(float if field != "numbers" else int)
    array[place] = value
    return replace(structure, **{field: array})


def moved(structure, by):
    """The last atom on the third one's point, or beside it."""
    return changed(structure, "positions", -1, structure.positions[2] + by)


FAULTS = {
    "element": lambda s: changed(s, "numbers", 3, 119),
    "no element": lambda s: changed(s, "numbers", 3, 0),
    "position": lambda s: changed(s, "positions", (3, 1), np.nan),
    "force": lambda s: changed(s, "forces", (3, 1), np.inf),
    "cell": lambda s: changed(s, "cell", (1, 1), 1e40),
    "virial": lambda s: changed(s, "virial", (1, 1), np.nan),
    "energy": lambda s: replace(s, energy=np.nan),
    "one point": lambda s: moved(s, 0),
    "nearly one point": lambda s: moved(s, [0.004, -0.006, 0.005]),
    "one point in another image": lambda s: moved(replace(s, cell=SKEWED, pbc=np.ones(3, bool)), SKEWED[0] - SKEWED[2]),
    "flat": lambda s: replace(s, cell=np.diag([9.0, 9, 0]), pbc=np.ones(3, bool)),
    "periodic without a cell": lambda s: replace(s, cell=np.zeros((3, 3)), pbc=np.ones(3, bool)),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("place", [0, 7, 11])
def test_faults_are_found_wherever_they_are(fault, periodic, place):
    structures = [sound(i, periodic=i % 2 == periodic) for i in range(12)]
    structures[place] = FAULTS[fault](structures[place])
    with pytest.raises(UserError):
        check_structure(structures[place], "a.xyz")
    assert np.flatnonzero(suspects(Joined(structures))).tolist() == [place]


@pytest.mark.parametrize("seed", range(20))
def test_atoms_on_one_point_of_any_cell_are_found(seed):
    """Also across its edges, however skewed and small it is."""
    random = np.random.default_rng(seed)
    cell = random.normal(size=(3, 3)) * 10 ** random.uniform(0, 1.5)
    positions = random.uniform(-3, 3, (6, 3)) @ cell
    direction = random.normal(size=3)
    positions[4] = positions[1] + random.integers(-3, 4, 3) @ cell + 0.0099 * direction / np.linalg.norm(direction)
    assert suspects(Joined([Structure(np.ones(6, int), positions, cell, np.ones(3, bool))])).tolist() == [True]


def test_crystals_are_seldom_suspected():
    points = np.stack(np.meshgrid(*3 * [np.arange(6)]), axis=-1).reshape(-1, 3) * 2.0
    crystal = Structure(np.full(216, 13), points, 12.0 * np.eye(3), np.ones(3, bool))
    assert not suspects(Joined([crystal, replace(crystal, pbc=np.zeros(3, bool))])).any()


def test_atoms_in_a_row_are_looked_at_one_by_one():
    """Where so many are near each other along the direction in which they are compared that it would take long."""
    row = np.cross([0.48, 0.6, 0.64], [0, 0, 1.0]) * np.arange(200)[:, None]
    assert suspects(Joined([Structure(np.ones(200, int), row)])).tolist() == [True]


def test_structures_without_labels():
    bare = Structure(np.array([1, 1]), np.array([[0, 0, 0], [0, 0, 0.74]]))
    joined = Joined([bare, sound(0, False), bare])
    assert joined.has_forces.tolist() == [False, True, False]
    np.testing.assert_array_equal(joined.forces[2:22], sound(0, False).forces)
    assert not joined.forces[:2].any()
    assert not suspects(joined).any()
