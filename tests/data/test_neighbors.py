"""Neighbour lists agree with ASE's for every kind of cell."""

import subprocess
import sys
from dataclasses import replace

import ase
import ase.neighborlist
import numpy as np
import pytest

from forgefield.data.neighbors import nearest_atoms, neighbor_counts, neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.errors import UserError

CUBE = np.eye(3) * 5.0
SKEWED = np.array([[5.0, 0, 0], [4.0, 4.5, 0], [-2.0, 3.0, 6.0]])
TINY = np.array([[1.6, 0, 0], [0.3, 1.8, 0], [0.2, -0.4, 2.1]])
NO_VECTOR = np.array([[4.0, 0, 0], [1.0, 5.0, 0], [0, 0, 0]])
CASES = {
    "molecule": (np.zeros((3, 3)), (False, False, False), 12),
    "molecule in a box": (CUBE, (False, False, False), 12),
    "cube": (CUBE, (True, True, True), 12),
    "skewed": (SKEWED, (True, True, True), 12),
    "left-handed": (SKEWED[[1, 0, 2]], (True, True, True), 12),
    "smaller than the cutoff": (TINY, (True, True, True), 2),
    "one atom, its own neighbor": (TINY, (True, True, True), 1),
    "slab": (SKEWED, (True, True, False), 12),
    "slab without a third vector": (NO_VECTOR, (True, True, False), 12),
    "wire without two vectors": (np.diag([0, 3.0, 0]), (False, True, False), 6),
}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_ase(case):
    cell, pbc, n = CASES[case]
    # Wider than the cell, so that atoms also lie outside of it.
    positions = np.random.default_rng(7).uniform(-2, 9, (n, 3))
    structure = Structure(np.full(n, 6), positions, cell, np.array(pbc))

    pairs = neighbor_pairs(structure, 3.5)

    vectors = positions[pairs.receiver] - positions[pairs.sender] + pairs.shift
    ours = as_rows(
        np.concatenate([pairs.sender, pairs.receiver]),
        np.concatenate([pairs.receiver, pairs.sender]),
        np.concatenate([vectors, -vectors]),
    )
    atoms = ase.Atoms(numbers=structure.numbers, positions=positions, cell=cell, pbc=pbc)
    theirs = as_rows(*ase.neighborlist.neighbor_list("ijD", atoms, 3.5))
    assert len(theirs) > 0
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
    np.testing.assert_array_equal(neighbor_counts(n, pairs), np.bincount(theirs[:, 0].astype(int), minlength=n))


def as_rows(i, j, vectors):
    """(pairs, 5) rows i, j, vector, in one order for both sides."""
    rows = np.column_stack([i, j, vectors])
    rounded = np.round(rows, 6) + 0.0  # no -0.0
    return rows[np.lexsort(rounded.T[::-1])]


def test_vectors_are_shorter_than_the_cutoff_and_types_are_what_models_take():
    structure = Structure(np.full(2, 6), np.array([[0.0, 0, 0], [1.0, 0, 0]]), TINY, np.ones(3, bool))
    pairs = neighbor_pairs(structure, 3.0)
    vectors = structure.positions[pairs.receiver] - structure.positions[pairs.sender] + pairs.shift
    assert np.linalg.norm(vectors, axis=1).max() < 3.0
    assert (pairs.receiver.dtype, pairs.sender.dtype, pairs.shift.dtype) == (np.int32, np.int32, np.float64)


def test_no_neighbors_give_empty_arrays():
    pairs = neighbor_pairs(Structure(np.array([2, 2]), np.array([[0.0, 0, 0], [9.0, 0, 0]])), 3.0)
    assert [x.shape for x in pairs] == [(0,), (0,), (0, 3)]


@pytest.mark.parametrize("other", [[0.0, 0, 0], [5.0, 5.0, 0]], ids=["the same point", "an image of it"])
def test_two_atoms_on_one_point_are_refused(other):
    structure = Structure(np.array([1, 1]), np.array([[0.0, 0, 0], other]), CUBE, np.ones(3, bool), source_index=4)
    with pytest.raises(UserError, match=r"frame 4: atoms . and . are on one point"):
        neighbor_pairs(structure, 3.0)
    with pytest.raises(UserError, match=r"frame 4: atoms . and . are on one point"):
        nearest_atoms(replace(structure, positions=np.ones((2, 3))), 1)


def test_nearest_atoms_however_far():
    positions = np.random.default_rng(3).uniform(0, 1e6, (9, 3)) * [1, 1, 0]
    distances, others = nearest_atoms(Structure(np.ones(9, int), positions), 4)
    apart = np.linalg.norm(positions[:, None] - positions, axis=-1)
    np.testing.assert_array_equal(others, apart.argsort(axis=1)[:, 1:5])
    np.testing.assert_allclose(distances, np.sort(apart, axis=1)[:, 1:5])


FLAT = CUBE[[0, 0, 2]]


@pytest.mark.parametrize("cell", [NO_VECTOR, FLAT], ids=["none", "twice the same"])
def test_a_periodic_direction_needs_a_cell_vector(cell):
    structure = Structure(np.array([1]), np.zeros((1, 3)), cell, np.ones(3, bool), source_index=4)
    with pytest.raises(UserError, match=r"frame 4: .* no cell vector"):
        neighbor_pairs(structure, 3.0)


# where they are not, the process ends by a signal, and this file with it
@pytest.mark.parametrize("pbc", [(True, True, True), (True, True, False), (False, False, False)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_positions_and_cells_that_are_no_numbers_are_refused(value, pbc):
    positions, cell = np.array([[0.0, 0, 0], [1.0, value, 0]]), CUBE.copy()
    cell[1, 1] = value
    for structure, message in [
        (Structure(np.ones(2, int), positions, CUBE, np.array(pbc), source_index=4), "position of atom 1"),
        (Structure(np.ones(2, int), np.eye(3)[:2], cell, np.array(pbc), source_index=4), "cell"),
    ]:
        with pytest.raises(UserError, match=f"frame 4: {message} NaN or infinite"):
            neighbor_pairs(structure, 3.0)


def test_a_flat_slab_is_refused():
    structure = Structure(np.ones(1, int), np.zeros((1, 3)), FLAT, np.array([True, True, False]), source_index=4)
    with pytest.raises(UserError, match=r"frame 4: periodic along a direction that has no cell vector"):
        neighbor_pairs(structure, 3.0)


def test_importing_the_data_stage_loads_neither_torch_nor_jax():
    code = (
        "import sys, forgefield.data.convert, forgefield.data.batching; "
        "loaded = {'torch', 'jax', 'mpi4py'} & set(sys.modules); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
