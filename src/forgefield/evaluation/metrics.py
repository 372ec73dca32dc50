"""The content of ``metrics.json`` for one split, from its predictions file: docs/metrics.md says what is in it.

Energies of all structures are in memory, and for medians and percentiles a few in a hundred of all other errors;
everything else is streamed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from forgefield.evaluation.bootstrap import blocks_of, draws
from forgefield.evaluation.part_errors import Group, QuantityInParts, groups_of
from forgefield.evaluation.partition import Contents, Partition, read_contents
from forgefield.evaluation.sums import items_of
from forgefield.evaluation.values import (
    ATOM_QUANTITIES,
    METRIC_UNITS,
    Chunk,
    energy_values,
    read_chunks,
    read_energies,
)

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
        self._part = {WHOLE: np.zeros(len(contents.n_atoms), np.int64)}
        self._part |= {way: partition.part for way, partition in contents.by_structure.items()}
        sizes = {WHOLE: 1} | {way: len(partition.labels) for way, partition in contents.by_structure.items()}
        self._found = {way: {q: self._new(n) for q in quantities} for way, n in sizes.items()}
        self._found["element"] = {q: self._new(len(contents.element.labels)) for q in ATOM_QUANTITIES}
        self._add_energies(*read_energies(predictions, variant))
        for chunk in read_chunks(predictions, variant, stress):
            self._add(chunk)
        for chunk in read_chunks(predictions, variant, stress):
            self._keep(chunk)

    def _new(self, parts: int) -> QuantityInParts:
        return QuantityInParts(parts, self._block.max(initial=0) + 1)

    def _add_energies(self, reference: np.ndarray, predicted: np.ndarray) -> None:
        contents = self._contents
        # as if predictions without a reference were absent, too: means over a composition are of the same structures
        predicted = np.where(np.isnan(reference), np.nan, predicted)
        values, others = (energy_values(e, contents.n_atoms, contents.composition) for e in (reference, predicted))
        for way, part in self._part.items():
            groups = groups_of(part)
            for quantity, of_reference in values.items():
                error, found = others[quantity] - of_reference, self._found[way][quantity]
                found.add(items_of(error[:, None]), part, self._block)
                found.count(groups, error, of_reference)
                found.keep(groups, error)

    def _add(self, chunk: Chunk) -> None:
        rows = np.asarray(chunk.rows)
        element = self._contents.element.part[chunk.numbers]
        grouped = self._groups(chunk)
        for quantity, error in chunk.errors.items():
            items = items_of(error)
            if quantity in ATOM_QUANTITIES:
                self._found["element"][quantity].add(items, element, self._block[rows[chunk.owner]])
                items = items.joined(chunk.owner, len(rows))
            for way, part in self._part.items():
                self._found[way][quantity].add(items, part[rows], self._block[rows])
            for way, groups in grouped[quantity in ATOM_QUANTITIES].items():
                self._found[way][quantity].count(groups, error, chunk.reference.get(quantity))

    def _keep(self, chunk: Chunk) -> None:
        grouped = self._groups(chunk)
        for quantity, error in chunk.errors.items():
            for way, groups in grouped[quantity in ATOM_QUANTITIES].items():
                self._found[way][quantity].keep(groups, error)

    def _groups(self, chunk: Chunk) -> tuple[dict[str, list[Group]], dict[str, list[Group]]]:
        """By way to divide the split, the structures of a chunk, and its atoms."""
        by_structure = {way: part[chunk.rows.start : chunk.rows.stop] for way, part in self._part.items()}
        by_atom = {way: part[chunk.owner] for way, part in by_structure.items()}
        by_atom["element"] = self._contents.element.part[chunk.numbers]
        structures, atoms = ({way: groups_of(p) for way, p in parts.items()} for parts in (by_structure, by_atom))
        return structures, atoms

    def parts(self, way: str, drawn: np.ndarray) -> list[dict[str, dict[str, Any]]]:
        """Errors over the parts by quantity; ``drawn`` is :func:`draws`."""
        by_quantity = {quantity: found.results(drawn) for quantity, found in self._found[way].items()}
        return [dict(zip(by_quantity, of_part, strict=True)) for of_part in zip(*by_quantity.values(), strict=True)]


def compute_metrics(predictions: Path, variants: Sequence[str], stress: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries of a split under ``splits`` and ``parts``; see :class:`VariantErrors` for the arguments."""
    contents = read_contents(predictions)
    drawn = draws(len(contents.n_atoms))
    found = {variant: VariantErrors(predictions, variant, contents, stress) for variant in variants}
    ways = {"element": contents.element, **contents.by_structure}
    parts: dict[str, Any] = {way: _parts(way, partition, found, drawn) for way, partition in ways.items()}
    parts["compositions_left_out"] = len(contents.counts) - len(contents.by_structure["composition"].labels)
    return {variant: errors.parts(WHOLE, drawn)[0] for variant, errors in found.items()}, parts


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
