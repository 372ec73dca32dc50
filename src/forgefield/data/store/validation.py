"""Is a store whole, and what is in it? Every number is read once, in blocks of rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from ase.data import chemical_symbols

from forgefield.data.store.layout import FORMAT_VERSION, columns
from forgefield.data.store.opening import AGAIN, DAMAGES, damaged, open_file
from forgefield.data.store.packed import FIRST, PACKED, holder, padded
from forgefield.data.store.reader import Store
from forgefield.errors import UserError

BLOCK_ATOMS = 100_000  # padding included
WEIGHTS = {"energy": "U_weight", "forces": "F_weight", "virial": "virial_weight"}


def validate_store(path: Path) -> dict[str, Any]:
    """Check the datasets' lengths and types, the units and attributes, and each row's numbers, mask and checksum.

    Returns:
        What the file holds: ``structures``, ``atoms`` (least and most), ``elements``, ``labels`` (how many structures
        have each), ``units``, ``format`` and ``source``.

    Raises:
        UserError: what is wrong, with file and structure.
    """
    with open_file(path) as file, Store(file) as store:
        _check_types(path, file, store.has_virial)
        labels, sizes = dict.fromkeys(WEIGHTS, 0), []
        step = max(1, BLOCK_ATOMS // store.max_atoms)
        for start in range(0, len(store), step):
            rows = np.arange(start, min(start + step, len(store)))
            values = store.read_columns(rows)
            _check_rows(path, rows, values, _mask(path, file, rows, values["n_atoms"], values["R"].shape[1]))
            sizes.append(values["n_atoms"])
            for label, key in WEIGHTS.items():
                labels[label] += int(np.count_nonzero(values[key])) if key in values else 0
        sizes = np.concatenate(sizes)
        return {
            "path": str(path),
            "structures": len(store),
            "atoms": {"least": int(sizes.min()), "most": int(sizes.max()), "all": int(sizes.sum())},
            "elements": [chemical_symbols[z] for z in store.elements],
            "labels": labels,
            "units": store.units.names(),
            "format": FORMAT_VERSION,
            "source": store.attributes.get("source"),
        }


def _check_types(path: Path, file: h5py.File, has_virial: bool) -> None:
    floating = holder(file, "R").dtype
    if floating not in (np.float64, np.float32):
        raise UserError(f"{path}: dataset R is of type {floating}, expected float64 or float32; {AGAIN}")
    for key, column in columns(0, has_virial).items():
        expected = np.dtype(column.dtype or floating)
        if (found := holder(file, key).dtype) != expected:
            raise UserError(f"{path}: dataset {key} is of type {found}, expected {expected}; {AGAIN}")


def _mask(path: Path, file: h5py.File, rows: np.ndarray, sizes: np.ndarray, width: int) -> np.ndarray:
    """(b, width) what is said to be an atom; that of a packed store has nothing but atoms."""
    start, end = int(rows[0]), int(rows[-1]) + 1
    try:
        if PACKED not in file:
            return file["mask"][start:end]
        first = int(file[PACKED][FIRST][start])
        return padded(file[PACKED]["mask"][first : first + int(sizes.sum())], sizes, width)
    except DAMAGES:
        raise damaged(path) from None


def _check_rows(path: Path, rows: np.ndarray, values: Mapping[str, np.ndarray], mask: np.ndarray) -> None:
    """What a right checksum does not tell: whether what was written makes sense."""
    is_atom = np.arange(mask.shape[1]) < values["n_atoms"][:, None]
    species = values["species"]
    padding = np.where(is_atom[..., None], 0.0, np.abs(values["R"]) + np.abs(values["F"])).any(axis=(1, 2))
    weights = np.stack([values[key] for key in WEIGHTS.values() if key in values])
    problems = {
        "n_atoms does not fit R": (values["n_atoms"] < 1) | (values["n_atoms"] > mask.shape[1]),
        "mask does not fit n_atoms": (mask != is_atom).any(axis=1),
        "species of no element": ((species > 118) | ((species > 0) != is_atom)).any(axis=1),
        "numbers in the padding": padding,
        "numbers that are not finite": ~np.isfinite([_sum(values[key]) for key in values]).all(axis=0),
        "a negative weight": (weights < 0).any(axis=0),
    }
    for problem, is_wrong in problems.items():
        if is_wrong.any():
            raise UserError(f"{path}: structure {rows[is_wrong.argmax()]}: {problem}; {AGAIN}")


def _sum(column: np.ndarray) -> np.ndarray:
    """(b,) a number for each row, which is finite where all of its numbers are."""
    return np.abs(column.reshape(len(column), -1)).max(axis=1)
