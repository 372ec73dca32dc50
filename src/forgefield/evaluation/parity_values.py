"""What parity plots show, streamed from a predictions file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from forgefield.errors import UserError
from forgefield.evaluation.baseline import composition_fit
from forgefield.evaluation.metrics_file import AGAIN
from forgefield.evaluation.partition import read_contents
from forgefield.evaluation.predictions import read_rows, real_atoms
from forgefield.evaluation.sums import Spread
from forgefield.evaluation.values import read_energies

Values = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Quantity:
    """One kind of parity plot.

    Attributes:
        name: as in the metrics file.
        label: of the axes, after "reference" or "predicted".
        unit: of the values, in words fit for a label.
        small: a thousandth of the unit, for errors.
        column: name of its column in a group of the predictions file.
    """

    name: str
    label: str
    unit: str
    small: str
    column: str


QUANTITIES = {
    "energy": Quantity("energy_per_atom", "energy", "eV/atom", "meV/atom", "energy"),
    "forces": Quantity("forces", "force component", "eV/Å", "meV/Å", "forces"),
    "stress": Quantity("stress", "stress component", "eV/Å³", "meV/Å³", "stress"),
}


class ParityValues:
    """The counted values of one quantity in a predictions file.

    Energies are less a fit of the reference to the composition, without which those of large and small, light and heavy
    structures would differ by far more than any error.

    Args:
        predictions: the predictions file.
        quantity: which.
        others: files with predictions of the same structures, by the variants that are in them.

    Attributes:
        label: of the axes.
        baseline: (N,) that fit, eV, which is not shown; None for other quantities.
    """

    def __init__(self, predictions: Path, quantity: Quantity, others: Mapping[str, Path] | None = None) -> None:
        self._path, self._quantity, self.label = predictions, quantity, quantity.label
        self._others = others or {}
        self.baseline = None
        if quantity.column == "energy":
            contents = read_contents(predictions)
            reference, _ = read_energies(predictions, "reference")
            fit = composition_fit(reference, contents.composition, contents.counts)
            self.baseline = (contents.counts @ fit)[contents.composition]
            several = len(np.unique(contents.composition[~np.isnan(reference)])) > 1
            self.label += " − composition fit" if several else " − mean reference"

    def of(self, variant: str) -> Iterator[Values]:
        """Stream (reference, predicted), flat."""
        names = ["n_atoms", f"reference/{self._quantity.column}", f"{variant}/{self._quantity.column}"]
        start = 0
        for rows in read_rows(self._others.get(variant, self._path), names):
            values = rows[names[1]], rows[names[2]]
            n_atoms = rows["n_atoms"]
            if self.baseline is not None:
                baseline = self.baseline[start : start + len(n_atoms)]
                values = tuple((energies - baseline) / n_atoms for energies in values)
            elif self._quantity.column == "forces":
                atoms = real_atoms(n_atoms, values[0].shape[1])
                values = tuple(forces[atoms] for forces in values)
            start += len(n_atoms)
            reference, predicted = values
            present = ~np.isnan(reference)
            yield reference[present], predicted[present]

    def spread(self, variant: str) -> float:
        """The squared deviations of the references from their mean."""
        found = Spread()
        for reference, _ in self.of(variant):
            found.add(reference)
        return found.squares

    def check(self, variant: str, n: int) -> None:
        """Are there ``n`` values, all finite? What is drawn from others would be wrong, or nothing.

        Raises:
            UserError: there are not.
        """
        what, found = f"{variant}/{self._quantity.column}", 0
        for pair in self.of(variant):
            found += pair[0].size
            if not np.isfinite(pair).all():
                raise UserError(f"{self._path}: {what} holds NaN or infinite values; {AGAIN}")
        if found != n:
            raise UserError(
                f"{self._path}: {found} values of {what} have a reference, but metrics.json counts {n}; {AGAIN}"
            )
