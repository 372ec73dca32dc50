"""Pairs of atoms within a cutoff, periodic images included, by vesin."""

import sys
from types import ModuleType
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from forgefield.data.structures import Structure
from forgefield.errors import FrameError


def _import_vesin() -> ModuleType:
    """vesin imports torch wherever that is installed, for tensors that never come here: seconds and 300 MB saved."""
    if "torch" in sys.modules:
        import vesin
    else:
        sys.modules["torch"] = None  # makes the import of torch fail, which vesin expects
        try:
            import vesin
        finally:
            del sys.modules["torch"]
    return vesin


vesin = _import_vesin()

FLAT = 1e-6  # in the structure's length unit; vesin ends the process where a cell has no volume


class NeighborPairs(NamedTuple):
    """Each undirected pair once; ``positions[receiver] - positions[sender] + shift`` is shorter than the cutoff.

    Attributes:
        receiver, sender: (p,) int32 atom indices; equal for an atom and its own periodic image.
        shift: (p, 3) float64 Cartesian lattice translation, in the structure's length unit.
    """

    receiver: np.ndarray
    sender: np.ndarray
    shift: np.ndarray


def neighbor_pairs(structure: Structure, cutoff: float) -> NeighborPairs:
    """The half neighbour list of one structure; correct for cells smaller than the cutoff and for mixed periodicity.

    Raises:
        UserError: a position or cell that is no number, a periodic direction without a cell vector, a flat cell, or two
            atoms on one point.
    """
    _require_finite(structure)
    box = periodic_box(structure)
    # One thread: faster for the sizes of reference data, and the order of pairs is the same every time.
    calculator = vesin.NeighborList(cutoff=cutoff, full_list=False, n_threads=1)
    # vesin's vector runs from i to j: D = positions[j] - positions[i] + S @ box
    i, j, images, distances = calculator.compute(structure.positions, box, structure.pbc, "ijSd")
    _require_apart(structure, i, j, distances)
    shift = images.astype(np.float64) @ np.where(structure.pbc[:, None], structure.cell, 0.0)
    return NeighborPairs(j.astype(np.int32), i.astype(np.int32), shift)


def nearest_atoms(structure: Structure, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(n_atoms, n) distances and indices of the nearest others of each atom, without periodic images.

    Raises:
        UserError: a position that is no number, or two atoms on one point.
    """
    _require_finite(structure)
    distances, others = cKDTree(structure.positions).query(structure.positions, k=np.arange(1, n + 2))
    _require_apart(structure, others[:, 0], others[:, 1], distances[:, 1])
    return distances[:, 1:], others[:, 1:]  # the nearest of all is the atom itself


def _require_apart(structure: Structure, i: np.ndarray, j: np.ndarray, distances: np.ndarray) -> None:
    if len(distances) and distances.min() < 1e-6:
        k = int(distances.argmin())
        pair = " and ".join(map(str, sorted((i[k], j[k]))))
        raise FrameError(structure.source_index, f"atoms {pair} are on one point; remove or repair this frame")


def _require_finite(structure: Structure) -> None:
    """vesin ends the process where a cell is not finite."""
    lost = np.flatnonzero(~np.isfinite(structure.positions).all(axis=1))
    if len(lost):
        what = f"position of atom {lost[0]}"
    elif not np.isfinite(structure.cell).all():
        what = "cell"
    else:
        return
    raise FrameError(structure.source_index, f"{what} NaN or infinite; remove or repair this frame")


def neighbor_counts(n_atoms: int, pairs: NeighborPairs) -> np.ndarray:
    """(n_atoms,) number of neighbours of each atom in the full list."""
    return np.bincount(pairs.receiver, minlength=n_atoms) + np.bincount(pairs.sender, minlength=n_atoms)


def periodic_box(structure: Structure) -> np.ndarray:
    """(3, 3) cell, with unit vectors completing directions that are not periodic; zeros where none is periodic.

    Raises:
        UserError: a periodic direction without a cell vector, or a flat cell.
    """
    if not structure.pbc.any():
        return np.zeros((3, 3))
    if is_flat(structure):
        raise FrameError(
            structure.source_index,
            f"periodic along a direction that has no cell vector of its own in "
            f"{structure.cell.tolist()}; set pbc or the cell",
        )
    if structure.pbc.all():
        return structure.cell
    return _complete(structure.cell, structure.pbc)


def is_flat(structure: Structure) -> bool:
    """Whether the cell vectors of the periodic directions do not span as many dimensions."""
    vectors = structure.cell[structure.pbc]
    return len(vectors) > 0 and np.linalg.matrix_rank(vectors, tol=FLAT) < len(vectors)


def _complete(cell: np.ndarray, pbc: np.ndarray) -> np.ndarray:
    """Replace the vectors of open directions by unit vectors orthogonal to the periodic ones."""
    _, _, rows = np.linalg.svd(cell[pbc])
    box = cell.copy()
    box[~pbc] = rows[pbc.sum() :]
    return box
