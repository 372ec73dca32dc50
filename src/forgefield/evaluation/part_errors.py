"""The errors of one quantity in each of several parts of the data: as sums, spreads and quantiles in bounded memory."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from forgefield.evaluation.bootstrap import intervals
from forgefield.evaluation.quantiles import Quantiles
from forgefield.evaluation.sums import ErrorSums, Items, Spread

SHARES = (0.5, 0.95)


class Group(NamedTuple):
    """Items of one part.

    Attributes:
        part: its number.
        places: which of the items they are.
    """

    part: int
    places: np.ndarray


def groups_of(part: np.ndarray) -> list[Group]:
    """The items of each part that has some; ``part`` (k,) is -1 where an item is in none."""
    order = np.argsort(part, kind="stable")
    parts, starts = np.unique(part[order], return_index=True)
    ends = [*starts[1:], len(order)]
    groups = zip(parts.tolist(), starts, ends, strict=True) if len(parts) else ()
    return [Group(number, order[start:end]) for number, start, end in groups if number >= 0]


class QuantityInParts:
    """The errors of one quantity.

    Call :meth:`add` and :meth:`count` with all values, then :meth:`keep` with all of them again, then :meth:`results`.

    Args:
        parts: how many there are.
        blocks: of the bootstrap.
    """

    def __init__(self, parts: int, blocks: int) -> None:
        self._sums = ErrorSums(parts, blocks)
        self._spreads = [Spread() for _ in range(parts)]
        self._quantiles = [Quantiles(SHARES) for _ in range(parts)]

    def add(self, items: Items, part: np.ndarray, block: np.ndarray) -> None:
        """Sums over items, each in its part and block."""
        self._sums.add(items, part, block)

    def count(self, groups: Sequence[Group], error: np.ndarray, reference: np.ndarray | None) -> None:
        """Values (k, c) of items, with the reference that R² compares them with, if any."""
        for part, places in groups:
            self._quantiles[part].count(np.abs(error[places]))
            if reference is not None:
                self._spreads[part].add(reference[places])

    def keep(self, groups: Sequence[Group], error: np.ndarray) -> None:
        """The same values again."""
        for part, places in groups:
            self._quantiles[part].keep(np.abs(error[places]))

    def results(self, drawn: np.ndarray) -> list[dict[str, Any]]:
        """The entries of ``metrics.json``, of each part; ``drawn`` is ``bootstrap.draws``."""
        return [self._result(part, *found) for part, found in enumerate(intervals(self._sums, drawn))]

    def _result(self, part: int, mae: list[float] | None, rmse: list[float] | None) -> dict[str, Any]:
        sums = self._sums
        n, squared, squares = int(sums.n[part].sum()), float(sums.squared[part].sum()), self._spreads[part].squares
        median, p95 = self._quantiles[part].result() or (None, None)
        return {
            "n": n,
            "absent": int(sums.absent[part]),
            "mae": float(sums.absolute[part].sum()) / n if n else None,
            "rmse": (squared / n) ** 0.5 if n else None,
            "max": float(sums.largest[part]) if n else None,
            "mae_interval": mae,
            "rmse_interval": rmse,
            "r2": 1.0 - squared / squares if squares > 0 else None,
            "median": median,
            "p95": p95,
        }
