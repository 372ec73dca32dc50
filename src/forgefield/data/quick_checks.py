"""Which of many structures have to be looked at one by one, found in a fraction of the time that this would take."""

import numpy as np

from forgefield.data.checks import LARGEST, ONE_POINT
from forgefield.data.joined import Joined
from forgefield.data.neighbors import FLAT

# Whole numbers of each scaled coordinate: an atom and its images are at the same place along them, atoms of a crystal
# seldom.
ALONG_CELL = np.array([1.0, 2.0, 3.0])
ALONG = np.array([0.48, 0.6, 0.64])  # of length 1, and along no bond
MOST_NEXT = 50  # atoms after each that are compared with it


def suspects(joined: Joined) -> np.ndarray:
    """(b,) where :func:`~forgefield.data.checks.check_structure` may refuse a structure; nearly always nowhere."""
    found = np.zeros(len(joined), bool)
    values = np.concatenate([joined.positions, joined.forces], axis=1)
    is_atom_odd = (joined.numbers < 1) | (joined.numbers > 118) | ~(np.abs(values) < LARGEST).all(axis=1)
    found[joined.owner[is_atom_odd]] = True
    found |= ~(np.abs(joined.energies) < LARGEST)
    for tensors in (joined.cells, joined.virials):
        found |= ~(np.abs(tensors) < LARGEST).all(axis=(1, 2))
    periodic = joined.pbc.all(axis=1)
    found |= joined.pbc.any(axis=1) & ~periodic  # slabs and wires are few
    whole = periodic & ~found
    if whole.any():
        found[whole] = np.linalg.svd(joined.cells[whole], compute_uv=False).min(axis=1) <= FLAT
    return found | _on_one_point(joined, found)


def _on_one_point(joined: Joined, passed_over: np.ndarray) -> np.ndarray:
    """(b,) where two atoms are closer than ONE_POINT, or it would take long to know.

    Such atoms are next to each other in the order of their places along one direction, but for few in between.
    """
    periodic = joined.pbc.all(axis=1) & ~passed_over
    inverse = np.zeros(joined.cells.shape)
    inverse[periodic] = np.linalg.inv(joined.cells[periodic])
    reach = np.where(periodic, ONE_POINT * np.linalg.norm(inverse @ ALONG_CELL, axis=1), ONE_POINT)
    found = periodic & (np.maximum(reach, ONE_POINT * np.linalg.norm(inverse, axis=1).max(axis=1)) > 0.4)
    atoms, along = _places(joined, np.flatnonzero(~(passed_over | found)[joined.owner]), inverse, periodic, reach)
    owner = joined.owner[atoms]
    for step in range(1, MOST_NEXT + 1):
        is_near = (along[step:] - along[:-step] <= 1.001 * reach[owner[step:]]) & (owner[step:] == owner[:-step])
        first, second = atoms[:-step][is_near], atoms[step:][is_near]
        if not len(first):
            return found
        found[joined.owner[first[_distances(joined, first, second, inverse, periodic) < ONE_POINT]]] = True
    found[joined.owner[first]] = True
    return found


def _places(
    joined: Joined, atoms: np.ndarray, inverse: np.ndarray, periodic: np.ndarray, reach: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Atoms and where they are along a direction, ascending for each structure; at the edge of a cell once more."""
    owner, positions = joined.owner[atoms], joined.positions[atoms]
    along, in_cell = positions @ ALONG, periodic[owner]
    along[in_cell] = np.vecdot(positions[in_cell], (inverse @ ALONG_CELL)[owner[in_cell]]) % 1.0
    at_edge = in_cell & (along < 1.001 * reach[owner])
    atoms, along = np.concatenate([atoms, atoms[at_edge]]), np.concatenate([along, along[at_edge] + 1.0])
    order = np.lexsort((along, joined.owner[atoms]))
    return atoms[order], along[order]


def _distances(
    joined: Joined, first: np.ndarray, second: np.ndarray, inverse: np.ndarray, periodic: np.ndarray
) -> np.ndarray:
    """(p,) of pairs of atoms, or of their nearest images."""
    apart, owner = joined.positions[second] - joined.positions[first], joined.owner[first]
    in_cell = periodic[owner]
    images = np.round(np.einsum("pi,pij->pj", apart[in_cell], inverse[owner[in_cell]]))
    apart[in_cell] -= np.einsum("pi,pij->pj", images, joined.cells[owner[in_cell]])
    return np.linalg.norm(apart, axis=1)
