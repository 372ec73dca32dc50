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


def intervals(sums: ErrorSums, drawn: np.ndarray) -> list[tuple[list[float] | None, list[float] | None]]:
    """Low and high of the mean absolute and of the root mean square error of each part; None for want of blocks."""
    parts = len(sums.n)
    resampled = drawn @ np.concatenate([sums.n, sums.absolute, sums.squared]).T
    n, absolute, squared = (resampled[:, i * parts : (i + 1) * parts] for i in range(3))
    # a resample without any value of a part says nothing of it
    with np.errstate(invalid="ignore"):
        means = absolute / n, np.sqrt(squared / n)
    enough = np.count_nonzero(sums.n, axis=1) > 1
    return [tuple(_ends(of_all[:, i]) for of_all in means) if enough[i] else (None, None) for i in range(parts)]


def _ends(values: np.ndarray) -> list[float]:
    return np.quantile(values[~np.isnan(values)], [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
