"""Errors as running sums: any number of values in constant memory, each counted once, whatever the chunks."""

from dataclasses import dataclass

import numpy as np

METRIC_UNITS = {"energy_per_atom": "eV/atom", "energy": "eV", "forces": "eV/angstrom", "stress": "eV/angstrom^3"}
"""Quantity -> unit of its mae, rmse and max."""


@dataclass
class ErrorSums:
    """Sums over the pairs of reference and prediction seen so far, for one quantity.

    Attributes:
        n: values counted.
        absent: values without a reference (NaN), which count in nothing else.
        absolute, squared: sums of |error| and error^2.
        largest: the largest |error|.
        origin, offset: of the reference, one of its values, and its mean minus that, which a total energy of -1e5 eV
            has more digits of than of the mean.
        spread: the sum of its squared deviations from the mean.
    """

    n: int = 0
    absent: int = 0
    absolute: float = 0.0
    squared: float = 0.0
    largest: float = 0.0
    origin: float = 0.0
    offset: float = 0.0
    spread: float = 0.0

    def add(self, reference: np.ndarray, predicted: np.ndarray) -> None:
        """Count values of equal shape; a NaN reference is an absent label, and a NaN prediction stays one."""
        present = ~np.isnan(reference)
        self.absent += int(present.size - present.sum())
        reference = np.asarray(reference, np.float64)[present]
        if not reference.size:
            return
        error = np.abs(np.asarray(predicted, np.float64)[present] - reference)
        from_first = reference - reference[0]
        offset = float(from_first.mean())
        self.join(
            ErrorSums(
                n=reference.size,
                absolute=float(error.sum()),
                squared=float((error**2).sum()),
                largest=float(error.max()),
                origin=float(reference[0]),
                offset=offset,
                spread=float(((from_first - offset) ** 2).sum()),
            )
        )

    def join(self, other: "ErrorSums") -> None:
        """Add the sums over other values.

        Chan, Golub and LeVeque (1979): joining means and squared deviations loses no digits to large totals.
        """
        self.absent += other.absent
        if not other.n:
            return
        if not self.n:
            self.origin = other.origin
        n, step = self.n + other.n, other.origin - self.origin + other.offset - self.offset
        self.absolute += other.absolute
        self.squared += other.squared
        self.largest = float(np.maximum(self.largest, other.largest))
        self.spread += other.spread + step**2 * self.n * other.n / n
        self.offset += step * other.n / n
        self.n = n

    def result(self) -> dict[str, float | int | None]:
        """n, absent, mae, rmse, r2 and max; None where there is nothing to average or no spread to explain."""
        if not self.n:
            return {"n": 0, "absent": self.absent, "mae": None, "rmse": None, "r2": None, "max": None}
        return {
            "n": self.n,
            "absent": self.absent,
            "mae": self.absolute / self.n,
            "rmse": (self.squared / self.n) ** 0.5,
            "r2": 1.0 - self.squared / self.spread if self.spread > 0 else None,
            "max": self.largest,
        }
