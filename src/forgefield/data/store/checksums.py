"""A checksum for each row of a store, by which damage is seen at the rows that are read."""

from collections.abc import Mapping

import numpy as np


class RowChecksums:
    """Sums of a row's 8-byte words, each times an odd random number of its own, and of the row's number, modulo 2^64.

    A change of one word changes the sum for certain, any other damage but for one case in about 2^63, and so do rows
    that change places. It costs a tenth of a CRC.

    Args:
        row_shapes: for each column, its row's shape and type as stored.
    """

    def __init__(self, row_shapes: Mapping[str, tuple[tuple[int, ...], np.dtype]]) -> None:
        words = {key: _words(np.zeros((1, *tail), dtype)).shape[1] for key, (tail, dtype) in row_shapes.items()}
        # a bit generator's raw stream is the same in every version of NumPy
        weights = np.random.PCG64(0).random_raw(sum(words.values())) | np.uint64(1)
        self._weights = dict(zip(words, np.split(weights, np.cumsum([*words.values()])[:-1]), strict=True))

    def __call__(self, rows: np.ndarray, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """(b,) uint64 of the rows with these numbers (b,), from their values (b, ...) as stored."""
        sums = rows.astype(np.uint64) + np.uint64(1)  # so that zeros are no valid row
        for key, weights in self._weights.items():
            sums += _words(columns[key]) @ weights
        return sums


def _words(values: np.ndarray) -> np.ndarray:
    """(b, ...) as (b, k) unsigned integers of the largest width that divides a row."""
    rows = np.ascontiguousarray(values).reshape(len(values), -1)
    row_bytes = rows.shape[1] * rows.itemsize
    width = next(width for width in (8, 4, 1) if row_bytes % width == 0)
    return rows.view(f"<u{width}")
