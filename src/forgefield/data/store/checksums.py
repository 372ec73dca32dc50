"""Checksums of a store's rows, by which damage is seen at the rows that are read, and of its attributes."""

import hashlib
import json
import math
from collections.abc import Mapping

import numpy as np

from forgefield.data.store.layout import ATTRIBUTES

WORD = np.dtype("<u8")
LARGE = 2048  # bytes; smaller rows are summed sooner together, in a copy


class RowChecksums:
    """Sums of a row's 8-byte words, each times an odd random number of its own, and of the row's number, modulo 2^64.

    A change of one word changes the sum for certain, any other damage but for one case in about 2^63, and so do rows
    that change places. It takes a sixth of the time of a CRC.

    Args:
        row_shapes: for each column, its row's shape and type as stored.
    """

    def __init__(self, row_shapes: Mapping[str, tuple[tuple[int, ...], np.dtype]]) -> None:
        sizes = {key: math.prod(tail) * dtype.itemsize for key, (tail, dtype) in row_shapes.items()}
        large = {key: size for key, size in sizes.items() if size >= LARGE and size % WORD.itemsize == 0}
        ends = np.cumsum([size for key, size in sizes.items() if key not in large]).tolist()
        small = [key for key in sizes if key not in large]
        self._places = {key: slice(end - sizes[key], end) for key, end in zip(small, ends, strict=True)}
        self._small_bytes = -(-ends[-1] // WORD.itemsize) * WORD.itemsize
        lengths = [size // WORD.itemsize for size in (self._small_bytes, *large.values())]
        # a bit generator's raw stream is the same in every version of NumPy
        weights = np.random.PCG64(0).random_raw(sum(lengths)) | np.uint64(1)
        self._small_weights, *others = np.split(weights, np.cumsum(lengths)[:-1])
        self._large_weights = dict(zip(large, others, strict=True))

    def __call__(self, rows: np.ndarray, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """(b,) uint64 of the rows with these numbers (b,), from their values (b, ...) as stored.

        Zeros at the end of a row, the padding, do not change its sum and may be left out, but for parts of a word.
        """
        b = len(rows)
        small = np.zeros((b, self._small_bytes), np.uint8)
        for key, place in self._places.items():
            content = columns[key].reshape(b, -1).view(np.uint8)
            small[:, place.start : place.start + content.shape[1]] = content
        sums = small.view(WORD) @ self._small_weights
        for key, weights in self._large_weights.items():
            words = columns[key].reshape(b, -1).view(WORD)
            sums += np.vecdot(words, weights[: words.shape[1]])
        return sums + rows.astype(WORD) + np.uint64(1)  # so that zeros are no valid row


def attributes_digest(attributes: Mapping[str, str]) -> str:
    """The sha256 of a store's own attributes; a user may add others."""
    own = [attributes.get(key) for key in ATTRIBUTES]
    return hashlib.sha256(json.dumps(own).encode()).hexdigest()
