"""Which structure a point belongs to: its formula, and where its frame is in the user's files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ase.data import chemical_symbols
from ase.formula import Formula

from forgefield.data.places import Places
from forgefield.evaluation.predictions import read_rows


@dataclass(frozen=True)
class Structures:
    """Structures as columns; equal texts are stored once.

    Attributes:
        columns: all of length n: ``row`` of the predictions file, ascending; ``formula`` and ``file``, which are places
            in the texts (-1 where no file is known); ``frame``, its number in that file; ``atoms``, how many it has.
        formulas, files: the texts.
    """

    columns: dict[str, np.ndarray]
    formulas: Sequence[str]
    files: Sequence[str]


def read_structures(predictions: Path, places: Places, rows: np.ndarray) -> Structures:
    """Describe the structures in some rows, ascending, of a predictions file."""
    numbers: dict[str, int] = {}
    found: dict[str, list[int]] = {"formula": [], "index": [], "atoms": []}
    start = 0
    for chunk in read_rows(predictions, ["n_atoms", "source_index", "species"]):
        stop = start + len(chunk["n_atoms"])
        for row in rows[(rows >= start) & (rows < stop)] - start:
            n = int(chunk["n_atoms"][row])
            formula = _formula(chunk["species"][row, :n])
            found["formula"].append(numbers.setdefault(formula, len(numbers)))
            found["index"].append(int(chunk["source_index"][row]))
            found["atoms"].append(n)
        start = stop
    columns = {name: np.array(values, np.int32) for name, values in found.items()}
    index, firsts = columns.pop("index"), np.array([first for _, first in places.files], np.int32)
    file = np.searchsorted(firsts, index, side="right") - 1
    columns["frame"] = index - firsts[file] if len(firsts) else index
    used = np.unique(file[file >= 0])
    columns["file"] = np.where(file < 0, -1, np.searchsorted(used, file)).astype(np.int32)
    return Structures({"row": rows.astype(np.int32), **columns}, list(numbers), [places.files[i][0] for i in used])


def _formula(species: np.ndarray) -> str:
    return Formula.from_list([chemical_symbols[z] for z in species]).format("hill")
