"""Which frames go to training, validation and test."""

from collections.abc import Mapping, Sequence

import numpy as np

from forgefield.errors import UserError

PARTS = ("train", "valid", "test")
Shares = Mapping[str, int | float]
Parts = dict[str, np.ndarray]
"""Part -> ascending positions among the usable frames. Frames beyond the sum of the shares are in no part."""


def split_frames(n_frames: int, method: str, shares: Shares, seed: int) -> Parts:
    """Divide frames 0 to ``n_frames`` - 1, in their order, into parts without overlap.

    Args:
        n_frames: usable frames.
        method: "blocks" takes train, valid and test one after the other in the source's order, so that frames next to
            each other in time stay together; "random" draws them with the seed.
        shares: by part, a count, or a fraction of ``n_frames``.
        seed: of the random draw.

    Raises:
        UserError: the parts need more frames than there are, or one would be empty.
    """
    counts = _counts(n_frames, shares)
    order = np.arange(n_frames) if method == "blocks" else np.random.default_rng(seed).permutation(n_frames)
    ends = np.cumsum(list(counts.values()))
    return {part: np.sort(order[end - n : end]) for (part, n), end in zip(counts.items(), ends, strict=True)}


def split_stratified(strata: Sequence[int], sizes: np.ndarray, shares: Shares, seed: int) -> Parts:
    """Divide frames at random, so that each part has its share of every stratum and of every size within it.

    Args:
        strata: for each usable frame the number of its stratum.
        sizes: atoms of each.
        shares: as for :func:`split_frames`.
        seed: of the random draw.

    Raises:
        UserError: as :func:`split_frames`.
    """
    random, counts = np.random.default_rng(seed), _counts(len(sizes), shares)
    order = np.lexsort((random.random(len(sizes)), sizes, np.asarray(strata)))
    counts["unused"] = len(sizes) - sum(counts.values())
    # each part's members are spread evenly, one at random in each of as many equal stretches
    places = np.concatenate([(np.arange(n) + random.random(n)) / max(n, 1) for n in counts.values()])
    owner = np.repeat(np.arange(len(counts)), list(counts.values()))[np.argsort(places)]
    return {part: np.sort(order[owner == i]) for i, part in enumerate(PARTS)}


def split_groups(groups: Sequence[int], by: str, shares: Shares, seed: int) -> Parts:
    """Divide frames so that those of one group are in one part, which makes the shares approximate.

    The largest group goes first, each to the part that lacks most.

    Args:
        groups: for each usable frame the number of its group, from 0.
        by: what makes a group, for messages.
        shares: as for :func:`split_frames`.
        seed: decides between groups of one size.

    Raises:
        UserError: as :func:`split_frames`, or there are fewer groups than parts.
    """
    groups = np.asarray(groups)
    sizes = np.bincount(groups)
    if len(sizes) < len(PARTS):
        raise UserError(f"split.by: {by} makes {len(sizes)} group(s), too few for {len(PARTS)} parts; choose another")
    lacking = _counts(len(groups), shares)
    lacking["unused"] = len(groups) - sum(lacking.values())
    owner, empty = np.zeros(len(sizes), int), list(PARTS)
    order = np.lexsort((np.random.default_rng(seed).random(len(sizes)), -sizes))
    for left, group in zip(range(len(order), 0, -1), order, strict=True):
        part = max(empty if left <= len(empty) else lacking, key=lacking.__getitem__)
        owner[group] = list(lacking).index(part)
        lacking[part] -= sizes[group]
        empty = [other for other in empty if other != part]
    return {part: np.flatnonzero(owner[groups] == i) for i, part in enumerate(PARTS)}


def _counts(n_frames: int, shares: Shares) -> dict[str, int]:
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
