"""A checksum for each row of a store, by which damage is seen at the rows that are read."""

import math
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
        self._words = {key: _word(tail, dtype) for key, (tail, dtype) in row_shapes.items()}
        lengths = [
            math.prod(tail) * dtype.itemsize // word.itemsize
            for (tail, dtype), word in zip(row_shapes.values(), self._words.values(), strict=True)
        ]
        # a bit generator's raw stream is the same in every version of NumPy
        weights = np.random.PCG64(0).random_raw(sum(lengths)) | np.uint64(1)
        self._weights = dict(zip(self._words, np.split(weights, np.cumsum(lengths)[:-1]), strict=True))

    def __call__(self, rows: np.ndarray, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """(b,) uint64 of the rows with these numbers (b,), from their values (b, ...) as stored."""
        sums = rows.astype(np.uint64) + np.uint64(1)  # so that zeros are no valid row
        for key, word in self._words.items():
            sums += columns[key].reshape(len(rows), -1).view(word) @ self._weights[key]
        return sums


def _word(tail: tuple[int, ...], dtype: np.dtype) -> np.dtype:
    """The largest unsigned integer that divides a row."""
    row_bytes = math.prod(tail) * dtype.itemsize
    return next(np.dtype(f"<u{width}") for width in (8, 4, 1) if row_bytes % width == 0)
