"""Which frames go to training, validation and test."""

from collections.abc import Mapping

import numpy as np

from forgefield.errors import UserError

PARTS = ("train", "valid", "test")


def split_frames(n_frames: int, method: str, shares: Mapping[str, int | float], seed: int) -> dict[str, np.ndarray]:
    """Divide frames 0 to ``n_frames`` - 1, in their order, into parts without overlap.

    Args:
        n_frames: usable frames.
        method: "blocks" takes train, valid and test one after the other in the source's order, so that frames next to
            each other in time stay together; "random" draws them with the seed.
        shares: by part, a count, or a fraction of ``n_frames``.
        seed: of the random draw.

    Returns:
        Part -> ascending positions among the usable frames. Frames beyond the sum of the shares are in no part.

    Raises:
        UserError: the parts need more frames than there are, or one would be empty.
    """
    counts = _counts(n_frames, shares)
    order = np.arange(n_frames) if method == "blocks" else np.random.default_rng(seed).permutation(n_frames)
    ends = np.cumsum(list(counts.values()))
    return {part: np.sort(order[end - n : end]) for (part, n), end in zip(counts.items(), ends, strict=True)}


def _counts(n_frames: int, shares: Mapping[str, int | float]) -> dict[str, int]:
    """Fractions are rounded at their running sum, so that fractions that add up to 1 use every frame."""
    counts, running = {}, 0.0
    for part in PARTS:
        share = shares[part]
        if isinstance(share, float):
            counts[part] = round((running + share) * n_frames) - round(running * n_frames)
            running += share
        else:
            counts[part] = share
    asked = ", ".join(f"{part} {shares[part]}" for part in PARTS)
    if sum(counts.values()) > n_frames:
        raise UserError(f"split larger than the data: {asked}, but {n_frames} frames are usable; lower the split")
    if empty := [part for part in PARTS if counts[part] < 1]:
        raise UserError(
            f"split leaves {empty[0]} without a frame: {asked} of {n_frames} usable frames; raise split.{empty[0]}"
        )
    return counts
