"""From labels to errors: what is compared, and in which units."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from forgefield.evaluation.predictions import UNITS, read_rows, real_atoms

METRIC_UNITS = {
    "energy_per_atom": "eV/atom",
    "energy": UNITS["energy"],
    "relative_energy": UNITS["energy"],
    "forces": UNITS["forces"],
    "force_norms": UNITS["forces"],
    "force_angles": "degree",
    "stress": UNITS["stress"],
}
"""Quantity -> unit of its errors."""

ATOM_QUANTITIES = ("forces", "force_norms", "force_angles")
LEAST_FORCE = 1e-3
"""eV/Å: smaller forces have no direction that a reference calculation or another order of sums would keep."""


class Chunk(NamedTuple):
    """Consecutive structures of a predictions file.

    Attributes:
        rows: their rows.
        numbers: (n,) atomic numbers of all their atoms.
        owner: (n,) the structure of each atom, counted from the first of the chunk.
        reference: values that R² compares errors with, by quantity, (k, c) of k atoms or structures.
        errors: (k, c) by quantity; NaN where there is no reference.
    """

    rows: range
    numbers: np.ndarray
    owner: np.ndarray
    reference: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]


def read_chunks(predictions: Path, variant: str, stress: bool) -> Iterator[Chunk]:
    """Stream the errors of forces and stresses."""
    quantities = ("forces", "stress") if stress else ("forces",)
    names = ["n_atoms", "species", *(f"{group}/{q}" for q in quantities for group in ("reference", variant))]
    start = 0
    for columns in read_rows(predictions, names):
        n_atoms = columns["n_atoms"]
        atoms = real_atoms(n_atoms, columns["species"].shape[1])
        reference, predicted = (columns[f"{group}/forces"][atoms] for group in ("reference", variant))
        values = {"forces": reference, "force_norms": np.linalg.norm(reference, axis=1, keepdims=True)}
        errors = dict(force_errors(reference, predicted))
        if stress:
            values["stress"] = columns["reference/stress"].reshape(-1, 9)
            errors["stress"] = columns[f"{variant}/stress"].reshape(-1, 9) - values["stress"]
        owner = np.repeat(np.arange(len(n_atoms)), n_atoms)
        yield Chunk(range(start, start + len(n_atoms)), columns["species"][atoms], owner, values, errors)
        start += len(n_atoms)


def force_errors(reference: np.ndarray, predicted: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Errors of components (n, 3), and of norms and angles (n, 1), from forces (n, 3)."""
    yield "forces", predicted - reference
    norms = [np.linalg.norm(forces, axis=1, keepdims=True) for forces in (reference, predicted)]
    yield "force_norms", norms[1] - norms[0]
    # unlike the arc cosine exact to rounding for small angles too
    across = np.linalg.norm(np.cross(reference, predicted), axis=1, keepdims=True)
    along = (reference * predicted).sum(axis=1, keepdims=True)
    angles = np.degrees(np.arctan2(across, along))
    yield "force_angles", np.where(np.minimum(*norms) >= LEAST_FORCE, angles, np.nan)


def read_energies(predictions: Path, variant: str) -> tuple[np.ndarray, np.ndarray]:
    """(N,) reference and predicted total energies, eV."""
    names = ["reference/energy", f"{variant}/energy"]
    chunks = [[rows[name] for name in names] for rows in read_rows(predictions, names)]
    return tuple(np.concatenate([np.zeros(0), *of_name]) for of_name in zip(*chunks, strict=True)) or (np.zeros(0),) * 2


def energy_values(energies: np.ndarray, n_atoms: np.ndarray, composition: np.ndarray) -> Mapping[str, np.ndarray]:
    """What is compared of total energies (N,), NaN where absent, by quantity."""
    present = ~np.isnan(energies)
    counted = np.bincount(composition[present], minlength=composition.max(initial=-1) + 1)
    first = np.zeros(len(counted))
    first[composition[present]] = energies[present]  # one of each composition, so that sums of the others are short
    less = energies - first[composition]
    mean = np.bincount(composition[present], less[present], len(counted)) / np.maximum(counted, 1)
    relative = np.where(counted[composition] > 1, less - mean[composition], np.nan)
    return {"energy_per_atom": energies / n_atoms, "energy": energies, "relative_energy": relative}
