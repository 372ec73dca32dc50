"""The points of a parity plot that a page has room for: the largest errors, and of the others a random part."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from forgefield.evaluation.parity_values import Quantity
from forgefield.evaluation.predictions import read_rows, real_atoms

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Points:
    """Some points of one quantity.

    Attributes:
        columns: all of length n: ``structure`` (row of the predictions file), ``place`` (of the value in it: 3 atom +
            component of forces, 3 row + column of stresses, else 0), ``element`` (atomic number, 0 where it is no
            atom's), ``reference``, and the prediction of each variant, in eV and Å.
        total: how many points there are in all.
    """

    columns: Columns
    total: int


def choose_points(
    predictions: Path, quantity: Quantity, variants: Sequence[str], most: int, baseline: np.ndarray | None = None
) -> Points:
    """At most ``most`` points, the same ones each time, in the order of the file; a tenth have the largest errors.

    Memory is for a few times as many, however many there are. Errors are those of the last variant. ``baseline`` (N,)
    is what energies are shown without, eV.
    """
    random = np.random.default_rng(0)
    worst, others, total = _Largest(most // 10), _Largest(most), 0
    for columns in _values(predictions, quantity, variants, baseline):
        n = len(columns["reference"])
        columns["number"] = np.arange(total, total + n)
        worst.add(np.abs(columns[variants[-1]] - columns["reference"]), columns)
        others.add(random.random(n), columns)
        total += n
    chosen = _joined([worst.columns(), others.columns()])
    first = np.sort(np.unique(chosen["number"], return_index=True)[1])[:most]
    order = first[np.argsort(chosen["number"][first])]
    return Points({key: column[order] for key, column in chosen.items() if key != "number"}, total)


def _values(
    predictions: Path, quantity: Quantity, variants: Sequence[str], baseline: np.ndarray | None
) -> Iterator[Columns]:
    """The values that have a reference, chunk by chunk."""
    names = [f"{group}/{quantity.column}" for group in ("reference", *variants)]
    start = 0
    for rows in read_rows(predictions, ["n_atoms", "species", *names]):
        n_atoms, shape = rows["n_atoms"], rows[names[0]].shape
        counts = ~np.isnan(rows[names[0]])
        element = np.zeros(shape, np.uint8)
        if quantity.column == "forces":
            counts &= real_atoms(n_atoms, shape[1])[:, :, None]
            element[:] = rows["species"][:, :, None]
        if quantity.column == "energy":
            shown_without = 0.0 if baseline is None else baseline[start : start + len(n_atoms)]
            rows |= {name: (rows[name] - shown_without) / n_atoms for name in names}
        values = {name.partition("/")[0]: rows[name][counts] for name in names}
        row, place = np.divmod(np.flatnonzero(counts), int(np.prod(shape[1:])))
        yield {"structure": row + start, "place": place, "element": element[counts], **values}
        start += shape[0]


class _Largest:
    """Those rows of a stream that have the largest keys."""

    def __init__(self, most: int) -> None:
        self._most, self._n = most, 0
        self._parts: list[Columns] = []

    def add(self, keys: np.ndarray, columns: Columns) -> None:
        """Take in rows, each with a key."""
        self._parts.append(columns | {"key": keys})
        self._n += len(keys)
        if self._n > 4 * self._most:
            self._cut()

    def _cut(self) -> None:
        columns = _joined(self._parts)
        order = np.argsort(-columns["key"], kind="stable")[: self._most]
        self._parts = [{key: column[order] for key, column in columns.items()}]
        self._n = len(order)

    def columns(self) -> Columns:
        """What was kept, in descending order of the keys."""
        self._cut()
        return {key: column for key, column in self._parts[0].items() if key != "key"}


def _joined(parts: Sequence[Columns]) -> Columns:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
