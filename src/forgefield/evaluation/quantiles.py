"""Exact quantiles of any number of values in two passes, of which neither keeps them all.

The first pass counts values by their leading bits, which tells in which bin each wanted quantile is; the second keeps
the values in these bins, a few in a hundred, and of equal ones, such as zeros, one and their number.
"""

from collections.abc import Sequence

import numpy as np

# a float64's exponent and the first four bits of its mantissa: bins are about 1/16 of their values wide
SHIFT = 48
ROOM = 2**16  # values that are collected before equal ones are joined
# what lies beyond 2^-60 and 2^40 shares the outermost bins
LEAST, MOST = ((1023 + exponent) << 4 for exponent in (-60, 40))


class Quantiles:
    """Quantiles by linear interpolation between neighboring values, as ``numpy.quantile`` finds them.

    Call :meth:`count` with all values, then :meth:`keep` with all of them again, then :meth:`result`. No value is
    negative; NaN is none.

    Attributes:
        held: how many values are in memory.
    """

    def __init__(self, shares: Sequence[float]) -> None:
        self._shares = shares
        self._counts = np.zeros(MOST - LEAST + 1, np.int64)
        # different values, ascending, and how often each occurs
        self._kept = np.zeros(0), np.zeros(0, np.int64)
        self._new: list[np.ndarray] = []
        self.held = 0
        self._wanted: np.ndarray | None = None

    def count(self, values: np.ndarray) -> None:
        """The first pass."""
        values = values[~np.isnan(values)]
        self._counts += np.bincount(_bins(values), minlength=len(self._counts))

    def keep(self, values: np.ndarray) -> None:
        """The second pass."""
        if self._wanted is None:
            self._wanted = np.zeros(len(self._counts), bool)
            self._wanted[self._bins_of(np.array([*self._ranks()], np.int64).ravel())] = True
        values = values[~np.isnan(values)]
        values = values[self._wanted[_bins(values)]]
        if not len(values):
            return
        self._new.append(values)
        self.held += len(values)
        if self.held > ROOM + 2 * len(self._kept[0]):  # rarely, where there are many
            self._merge()

    def _merge(self) -> None:
        kept, counts = self._kept
        values, place = np.unique(np.concatenate([kept, *self._new]), return_inverse=True)
        weights = np.ones(len(place), np.int64)
        weights[: len(kept)] = counts
        self._kept = values, np.bincount(place, weights, len(values)).astype(np.int64)
        self._new, self.held = [], len(values)

    def result(self) -> list[float] | None:
        """The quantiles; None without values."""
        if not self._counts.sum():
            return None
        self._merge()
        ordered, last = self._kept[0], np.cumsum(self._kept[1])
        # how many of all values come before the first kept one of each bin, less how many kept ones do
        kept = np.where(self._wanted, self._counts, 0)
        skipped = (np.cumsum(self._counts) - self._counts) - (np.cumsum(kept) - kept)
        found = []
        for share, (low, high) in zip(self._shares, self._ranks(), strict=True):
            places = [rank - skipped[self._bins_of(np.array([rank]))[0]] for rank in (low, high)]
            a, b = ordered[np.searchsorted(last, places, side="right")]
            found.append(float(a + (b - a) * (share * (self._counts.sum() - 1) - low)))
        return found

    def _ranks(self) -> list[tuple[int, int]]:
        """Between which two of the ordered values each quantile is."""
        last = int(self._counts.sum()) - 1
        lows = [int(np.floor(share * last)) for share in self._shares] if last >= 0 else []
        return [(low, min(low + 1, last)) for low in lows]

    def _bins_of(self, ranks: np.ndarray) -> np.ndarray:
        return np.searchsorted(np.cumsum(self._counts), ranks, side="right")


def _bins(values: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(values, np.float64).view(np.int64) >> SHIFT
    return np.clip(bits, LEAST, MOST) - LEAST
