"""The parts of a split by which errors are listed: elements, compositions, sizes and source files."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ase.data import chemical_symbols

from forgefield.evaluation.compositions import NUMBERS, Compositions, formula
from forgefield.evaluation.predictions import read_rows, read_sources

MOST_COMPOSITIONS, MOST_FILES, MOST_SIZES, SIZE_RANGES = 50, 50, 20, 10


class Partition(NamedTuple):
    """One way to divide a split.

    Attributes:
        labels: of the parts.
        part: (N,) of each structure, -1 where it is in none; by element, of each atomic number.
        structures, atoms: (parts,) in each part.
    """

    labels: list[str]
    part: np.ndarray
    structures: np.ndarray
    atoms: np.ndarray


@dataclass(frozen=True)
class Contents:
    """What a predictions file says of its structures beside labels.

    Attributes:
        n_atoms: (N,) of each structure.
        composition: (N,) index of its composition.
        counts: (compositions, NUMBERS) atoms of each atomic number.
        element: the split by element.
        by_structure: the split by composition, size and file.
    """

    n_atoms: np.ndarray
    composition: np.ndarray
    counts: np.ndarray
    element: Partition
    by_structure: dict[str, Partition]


def read_contents(predictions: Path) -> Contents:
    """Read sizes and species of all structures, of which the latter are not kept."""
    none = np.zeros(0, np.int64)
    known = Compositions()
    n_atoms, frames, compositions = [none], [none], [none]
    for rows in read_rows(predictions, ["n_atoms", "source_index", "species"]):
        n_atoms.append(rows["n_atoms"])
        frames.append(rows["source_index"])
        compositions.append(known.number(rows["species"]))
    counts = known.counts
    atoms, composition = np.concatenate(n_atoms), np.concatenate(compositions)
    by_structure = {
        "composition": _by_composition(composition, counts, atoms),
        "size": _by_size(atoms),
        "file": _by_file(predictions, np.concatenate(frames), atoms),
    }
    return Contents(atoms, composition, counts, _by_element(composition, counts), by_structure)


def _by_element(composition: np.ndarray, counts: np.ndarray) -> Partition:
    """Elements with most atoms first."""
    structures = np.bincount(composition, minlength=len(counts))
    atoms = structures @ counts
    present = np.argsort(-atoms, kind="stable")[: np.count_nonzero(atoms)]
    part = np.full(NUMBERS, -1)
    part[present] = np.arange(len(present))
    labels = [chemical_symbols[z] for z in present]
    return Partition(labels, part, structures @ (counts[:, present] > 0), atoms[present])


def _by_composition(composition: np.ndarray, counts: np.ndarray, n_atoms: np.ndarray) -> Partition:
    chosen = np.argsort(-np.bincount(composition, minlength=len(counts)), kind="stable")[:MOST_COMPOSITIONS]
    number = np.full(len(counts), -1)
    number[chosen] = np.arange(len(chosen))
    return _partition([formula(counts[i]) for i in chosen], number[composition], n_atoms)


def _by_size(n_atoms: np.ndarray) -> Partition:
    first = np.unique(n_atoms)
    if len(first) > MOST_SIZES:
        first = np.unique(np.quantile(n_atoms, np.arange(SIZE_RANGES) / SIZE_RANGES, method="lower"))
    part = np.searchsorted(first, n_atoms, side="right") - 1
    ends = [(n_atoms[part == i].min(), n_atoms[part == i].max()) for i in range(len(first))]
    return _partition([f"{a}" if a == b else f"{a}-{b}" for a, b in ends], part, n_atoms)


def _by_file(predictions: Path, frames: np.ndarray, n_atoms: np.ndarray) -> Partition:
    sources = read_sources(predictions)
    if len(sources) < 2:
        return _partition([], np.full(len(frames), -1), n_atoms)
    first = [frame for _, frame in sources]
    numbers = [bisect_right(first, frame) - 1 for frame in frames.tolist()]
    files, part, structures = np.unique(numbers, return_inverse=True, return_counts=True)
    chosen = np.sort(np.argsort(-structures, kind="stable")[:MOST_FILES])
    place = np.full(len(files), -1)
    place[chosen] = np.arange(len(chosen))
    return _partition([sources[i][0] for i in files[chosen]], place[part.ravel()], n_atoms)


def _partition(labels: Sequence[str], part: np.ndarray, n_atoms: np.ndarray) -> Partition:
    inside = part >= 0
    structures = np.bincount(part[inside], minlength=len(labels))
    atoms = np.bincount(part[inside], n_atoms[inside], len(labels)).astype(int)
    return Partition(list(labels), part, structures, atoms)
