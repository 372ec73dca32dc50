"""How far errors could be off because a split is a sample: intervals by drawing its structures anew."""

import numpy as np

from forgefield.evaluation.sums import ErrorSums

LEVEL, RESAMPLES, BLOCKS, SEED = 0.95, 1000, 1000, 0


def blocks_of(n: int) -> np.ndarray:
    """(n,) the block of each structure: its own, or one of ``BLOCKS`` of as many consecutive structures."""
    return np.arange(n) * min(n, BLOCKS) // n if n else np.zeros(0, np.int64)


def draws(n: int) -> np.ndarray:
    """(RESAMPLES, blocks) how often each block of ``n`` structures is drawn in each resample; always the same."""
    blocks = max(1, min(n, BLOCKS))
    generator = np.random.default_rng(SEED)
    return generator.multinomial(blocks, np.full(blocks, 1.0 / blocks), RESAMPLES).astype(float)


def intervals(sums: ErrorSums, drawn: np.ndarray, part: int) -> tuple[list[float] | None, list[float] | None]:
    """Low and high of the mean absolute and of the root mean square error of a part, or None for want of blocks."""
    if np.count_nonzero(sums.n[part]) < 2:
        return None, None
    n, absolute, squared = (drawn @ values[part] for values in (sums.n, sums.absolute, sums.squared))
    drawn_any = n > 0
    means = (absolute[drawn_any] / n[drawn_any], np.sqrt(squared[drawn_any] / n[drawn_any]))
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    mae, rmse = (np.quantile(values, ends).tolist() for values in means)
    return mae, rmse
