"""Checks of single structures: what no calculation can have given is refused."""

import numpy as np
from scipy.spatial import cKDTree

from forgefield.data.neighbors import is_flat, periodic_box
from forgefield.data.structures import Structure
from forgefield.errors import UserError

ONE_POINT = 0.01  # Å; the nearest nuclei of any molecule, those of H2, are 0.74 Å apart
LARGEST = 1e30  # eV and Å; its square fits float64, and in any unit it fits float32


def check_structure(structure: Structure, where: str) -> None:
    """Refuse what no calculation can have given.

    Args:
        structure: in eV and Å.
        where: file and frame, for messages.

    Raises:
        UserError: an unknown element, a number that is not finite or beyond all measure, a periodic direction without a
            cell vector, a flat cell, or two atoms on one point.
    """
    if structure.numbers.min() < 1 or structure.numbers.max() > 118:
        unknown = np.flatnonzero((structure.numbers < 1) | (structure.numbers > 118))
        number = structure.numbers[unknown[0]]
        raise UserError(
            f"{where}: atom {unknown[0]} is of no element (atomic number {number}); remove or repair this frame"
        )
    for name in ("positions", "cell", "energy", "forces", "virial"):
        value = getattr(structure, name)
        if value is not None and not np.abs(value).max() < LARGEST:  # a NaN is not below anything
            lost = ~(np.abs(value) < LARGEST)
            first = np.asarray(value)[lost][0]
            found = f"{first:.3g}, beyond all measure," if np.isfinite(first) else "NaN or infinite"
            atom = f" at atom {np.argwhere(lost)[0][0]}" if name in ("positions", "forces") else ""
            raise UserError(f"{where}: {name} {found}{atom}; remove or repair this frame")
    if is_flat(structure):
        cell = structure.cell.tolist()
        raise UserError(f"{where}: periodic along a direction without a cell vector in {cell}; set pbc or the cell")
    if len(pair := _atoms_on_one_point(structure)):
        raise UserError(f"{where}: atoms {pair[0]} and {pair[1]} are on one point; remove or repair this frame")


def _atoms_on_one_point(structure: Structure) -> np.ndarray:
    """(2,) indices of two atoms closer than :data:`ONE_POINT`, periodic images included; (0,) if there are none."""
    pbc = structure.pbc
    if not pbc.any():
        return cKDTree(structure.positions).query_pairs(ONE_POINT, output_type="ndarray")[:1].ravel()
    box = periodic_box(structure)
    scaled = structure.positions @ np.linalg.inv(box)
    scaled[:, pbc] %= 1.0
    scaled[scaled == 1.0] = 0.0  # -1e-20 % 1.0 is 1.0
    reach = ONE_POINT / np.linalg.svd(box, compute_uv=False).min()
    atoms = np.arange(len(scaled))
    for axis in np.flatnonzero(pbc):  # images of atoms at the cell's lower faces; a tree of a periodic box takes longer
        is_near = scaled[:, axis] < reach
        if is_near.any():
            scaled = np.concatenate([scaled, scaled[is_near] + np.eye(3)[axis]])
            atoms = np.concatenate([atoms, atoms[is_near]])
    pairs = cKDTree(scaled).query_pairs(reach, output_type="ndarray")
    apart = (scaled[pairs[:, 0]] - scaled[pairs[:, 1]]) @ box
    pairs = atoms[pairs[np.linalg.norm(apart, axis=1) < ONE_POINT]]
    return np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)[:1].ravel()
