"""The content of ``metrics.json`` for one split, from its predictions file: docs/metrics.md says what is in it.

Energies of all structures are in memory, everything else is streamed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from forgefield.evaluation.bootstrap import blocks_of, draws, intervals
from forgefield.evaluation.partition import Contents, Partition, read_contents
from forgefield.evaluation.quantiles import Quantiles
from forgefield.evaluation.sums import ErrorSums, Items, Spread, items_of
from forgefield.evaluation.values import (
    ATOM_QUANTITIES,
    ENERGY_QUANTITIES,
    METRIC_UNITS,
    Chunk,
    energy_values,
    read_chunks,
    read_energies,
)

SHARES = (0.5, 0.95)
WHOLE = "whole"


class VariantErrors:
    """The errors of one variant of the model over a split, and over its parts.

    Args:
        predictions: the predictions file.
        variant: of the model, a group in it.
        contents: of the file.
        stress: whether it holds stresses.
    """

    def __init__(self, predictions: Path, variant: str, contents: Contents, stress: bool) -> None:
        self._contents, self._block = contents, blocks_of(len(contents.n_atoms))
        quantities = [q for q in METRIC_UNITS if stress or q != "stress"]
        self._spread = {q: Spread() for q in quantities}
        self._quantiles = {q: Quantiles(SHARES) for q in quantities}
        self._sums = {WHOLE: {q: self._new(1) for q in quantities}}
        self._sums["element"] = {q: self._new(len(contents.element.labels)) for q in ATOM_QUANTITIES}
        for way, partition in contents.by_structure.items():
            kept = (*ENERGY_QUANTITIES, *ATOM_QUANTITIES)
            self._sums[way] = {q: self._new(len(partition.labels)) for q in kept}
        self._add_energies(*read_energies(predictions, variant))
        for chunk in read_chunks(predictions, variant, stress):
            self._add(chunk)
        for chunk in read_chunks(predictions, variant, stress):
            for quantity, error in chunk.errors.items():
                self._quantiles[quantity].keep(np.abs(error))

    def _new(self, parts: int) -> ErrorSums:
        return ErrorSums(parts, self._block.max(initial=0) + 1)

    def _add_energies(self, reference: np.ndarray, predicted: np.ndarray) -> None:
        contents, rows = self._contents, np.arange(len(reference))
        # as if predictions without a reference were absent, too: means over a composition are of the same structures
        predicted = np.where(np.isnan(reference), np.nan, predicted)
        values, others = (energy_values(e, contents.n_atoms, contents.composition) for e in (reference, predicted))
        for quantity, of_reference in values.items():
            error = others[quantity] - of_reference
            self._spread[quantity].add(of_reference)
            self._add_structures(quantity, items_of(error[:, None]), rows)
            self._quantiles[quantity].count(np.abs(error))
            self._quantiles[quantity].keep(np.abs(error))

    def _add(self, chunk: Chunk) -> None:
        rows = np.asarray(chunk.rows)
        element = self._contents.element.part[chunk.numbers]
        for quantity, error in chunk.errors.items():
            items = items_of(error)
            self._quantiles[quantity].count(np.abs(error))
            if quantity in chunk.reference:
                self._spread[quantity].add(chunk.reference[quantity])
            if quantity in ATOM_QUANTITIES:
                self._sums["element"][quantity].add(items, element, self._block[rows[chunk.owner]])
                items = items.joined(chunk.owner, len(rows))
            self._add_structures(quantity, items, rows)

    def _add_structures(self, quantity: str, items: Items, rows: np.ndarray) -> None:
        self._sums[WHOLE][quantity].add(items, np.zeros(len(rows), np.int64), self._block[rows])
        for way, partition in self._contents.by_structure.items():
            if quantity in self._sums[way]:
                self._sums[way][quantity].add(items, partition.part[rows], self._block[rows])

    def whole(self, drawn: np.ndarray) -> dict[str, dict[str, Any]]:
        """Errors over the split by quantity; ``drawn`` is :func:`draws`."""
        found = {}
        for quantity, sums in self._sums[WHOLE].items():
            median, p95 = self._quantiles[quantity].result() or (None, None)
            squares = self._spread[quantity].squares
            r2 = 1.0 - float(sums.squared.sum()) / squares if squares > 0 else None
            (errors,) = _errors(sums, drawn)
            found[quantity] = errors | {"r2": r2, "median": median, "p95": p95}
        return found

    def parts(self, way: str, drawn: np.ndarray) -> list[dict[str, dict[str, Any]]]:
        """Errors over the parts by quantity."""
        by_quantity = {quantity: _errors(sums, drawn) for quantity, sums in self._sums[way].items()}
        return [dict(zip(by_quantity, of_part, strict=True)) for of_part in zip(*by_quantity.values(), strict=True)]


def _errors(sums: ErrorSums, drawn: np.ndarray) -> list[dict[str, Any]]:
    """Of each part."""
    return [_errors_of_part(sums, part, *found) for part, found in enumerate(intervals(sums, drawn))]


def _errors_of_part(sums: ErrorSums, part: int, mae: list[float] | None, rmse: list[float] | None) -> dict[str, Any]:
    n, absent = int(sums.n[part].sum()), int(sums.absent[part])
    if not n:
        return {"n": 0, "absent": absent} | dict.fromkeys(["mae", "rmse", "max", "mae_interval", "rmse_interval"])
    return {
        "n": n,
        "absent": absent,
        "mae": float(sums.absolute[part].sum()) / n,
        "rmse": (float(sums.squared[part].sum()) / n) ** 0.5,
        "max": float(sums.largest[part]),
        "mae_interval": mae,
        "rmse_interval": rmse,
    }


def compute_metrics(predictions: Path, variants: Sequence[str], stress: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries of a split under ``splits`` and ``parts``; see :class:`VariantErrors` for the arguments."""
    contents = read_contents(predictions)
    drawn = draws(len(contents.n_atoms))
    found = {variant: VariantErrors(predictions, variant, contents, stress) for variant in variants}
    ways = {"element": contents.element, **contents.by_structure}
    parts: dict[str, Any] = {way: _parts(way, partition, found, drawn) for way, partition in ways.items()}
    parts["compositions_left_out"] = len(contents.counts) - len(contents.by_structure["composition"].labels)
    return {variant: errors.whole(drawn) for variant, errors in found.items()}, parts


def _parts(
    way: str, partition: Partition, found: Mapping[str, VariantErrors], drawn: np.ndarray
) -> dict[str, dict[str, Any]]:
    errors = {variant: of_variant.parts(way, drawn) for variant, of_variant in found.items()}
    return {
        label: {
            "structures": int(partition.structures[i]),
            "atoms": int(partition.atoms[i]),
            "errors": {variant: of_parts[i] for variant, of_parts in errors.items()},
        }
        for i, label in enumerate(partition.labels)
    }
