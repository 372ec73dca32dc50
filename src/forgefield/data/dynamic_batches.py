"""Batches of about the same work instead of the same number of structures.

The work of a structure is its atoms and its neighbor pairs, each in units of the data's mean: a batch of ``b`` average
structures has the work ``b`` in both. Everything here follows from the sizes and a random generator, so that processes
which know them compute the same batches without a word.
"""

import numpy as np

from forgefield.data.plans import Sizes

# So many batches are dealt at once, few where they are large: enough to even sizes out, few enough to be quick.
WINDOW, WINDOW_STRUCTURES = (4, 32), 2048
# So often a batch is shared anew where a share exceeds the limit.
ATTEMPTS = 8


def relative_work(sizes: Sizes) -> np.ndarray:
    """(n, 2) atoms and pairs of each structure in units of their means."""
    # sums of integers and single operations: the same bits on any processor
    return np.stack([each * (len(each) / max(int(each.sum()), 1)) for each in (sizes.atoms, sizes.pairs)], axis=1)


def even_batches(
    work: np.ndarray, order: np.ndarray, count: int, limit: float, rng: np.random.Generator
) -> list[np.ndarray]:
    """Batches of even work, in random order, with each structure of ``order`` in one of them.

    A structure beyond the limit is a batch of its own. All others are shared evenly by the remaining batches.

    Args:
        work: (n, 2) see :func:`relative_work`.
        order: rows in random order.
        count: of batches; there are more where the limit asks for more.
        limit: work that a batch should not exceed.
        rng: orders the batches.
    """
    beyond = work[order].max(axis=1) > limit
    alone, rest = order[beyond], order[~beyond]
    needed = int(np.ceil(work[rest].sum(axis=0).max(initial=0.0) / limit))
    count = max(count - len(alone), needed, min(len(rest), 1))
    batches = [*alone[:, None], *(_dealt(work, rest, count) if count else [])]
    return [batches[i] for i in rng.permutation(len(batches))]


def even_shares(work: np.ndarray, batches: list[np.ndarray], parts: int, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Share each batch by ``parts``, as evenly as is quickly found and, where that is found, within the limit.

    Returns:
        (n,) rows, batch by batch and in each part by part; (batches, parts + 1) where each part starts and ends.
    """
    lengths = np.array([len(batch) for batch in batches])
    rows, batch = np.concatenate(batches), np.repeat(np.arange(len(batches)), lengths)
    part = np.zeros(len(rows), np.int64)
    heaviest = np.full(len(batches), np.inf)
    possible = np.maximum.reduceat(work[rows].max(axis=1), np.cumsum(lengths) - lengths) <= limit
    left = np.ones(len(batches), bool)
    noise = np.random.default_rng(0)
    for attempt in range(ATTEMPTS if parts > 1 else 0):
        chosen = np.flatnonzero(left[batch])
        # the largest first, but not so strictly again
        size = work[rows[chosen]].max(axis=1) * (1 + noise.random(len(chosen)) * (attempt > 0))
        chosen = chosen[np.lexsort((-size, batch[chosen]))]
        found, found_heaviest = _deal(work[rows[chosen]], lengths[left], np.full(left.sum(), parts))
        better = np.zeros(len(batches), bool)
        better[left] = found_heaviest < heaviest[left]
        kept = better[batch[chosen]]
        part[chosen[kept]] = found[kept]
        heaviest[left] = np.minimum(heaviest[left], found_heaviest)
        left &= possible & (heaviest > limit)
        if not left.any():
            break
    ends = np.cumsum(np.bincount(batch * parts + part, minlength=len(batches) * parts)).reshape(-1, parts)
    return rows[np.lexsort((part, batch))], np.column_stack([ends[:, -1] - lengths, ends])


def within_limit(work: np.ndarray, rows: np.ndarray, limit: float) -> list[np.ndarray]:
    """Divide ``rows`` into as few groups as first fit, largest first, finds within the limit; mostly into one."""
    if len(rows) < 2 or work[rows].sum(axis=0).max() <= limit:
        return [rows] if len(rows) else []
    groups: list[list[int]] = []
    filled: list[np.ndarray] = []
    for row in rows[np.argsort(-work[rows].max(axis=1), kind="stable")]:
        fits = (i for i, sums in enumerate(filled) if (sums + work[row]).max() <= limit)
        if (i := next(fits, None)) is None:
            groups.append([row])
            filled.append(work[row])
        else:
            groups[i].append(row)
            filled[i] = filled[i] + work[row]
    return [np.array(group) for group in groups]


def _dealt(work: np.ndarray, order: np.ndarray, count: int) -> list[np.ndarray]:
    """``count`` batches of even work.

    Large structures are dealt first, and small ones even out what is left. In between, the order stays random: within a
    factor of two structures count as equally large, or the same ones would meet in every epoch.
    """
    largest = work[order].max(axis=1)
    order = order[np.argsort(-np.frexp(largest)[1], kind="stable")]
    windows = -(-count // np.clip(WINDOW_STRUCTURES * count // len(order), *WINDOW))
    window_of = np.arange(count) % windows
    window = window_of[np.arange(len(order)) % count]
    by_window = np.argsort(window, kind="stable")
    order, window = order[by_window], window[by_window]
    bins = np.bincount(window_of, minlength=windows)
    place, _ = _deal(work[order], np.bincount(window, minlength=windows), bins)
    batch = (np.cumsum(bins) - bins)[window] + place
    by_batch = np.argsort(batch, kind="stable")
    return np.split(order[by_batch], np.cumsum(np.bincount(batch, minlength=count))[:-1])


def _deal(work: np.ndarray, lengths: np.ndarray, bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Deal the structures of each group, one after another, to the bin of their group that has least to do.

    All groups are dealt at once, a structure of each at a time.

    Args:
        work: (n, 2), group after group.
        lengths: (g,) structures in each group.
        bins: (g,) of each group.

    Returns:
        (n,) the bin of each structure, counted from 0 in its group; (g,) the work of the group's heaviest bin.
    """
    longest = np.argsort(-lengths, kind="stable")
    starts, ascending = (np.cumsum(lengths) - lengths)[longest], np.sort(lengths)
    filled = np.zeros((2, len(lengths), bins.max()))
    filled[:, np.arange(bins.max()) >= bins[longest][:, None]] = np.inf
    chosen = np.empty(len(work), np.int64)
    for i in range(lengths.max()):
        # the groups that have so many structures come first
        groups = np.arange(len(lengths) - np.searchsorted(ascending, i, side="right"))
        items = starts[groups] + i
        atoms, pairs = filled[:, : len(groups)] + work[items].T[:, :, None]
        # the sum decides between bins whose larger measure is equal
        chosen[items] = np.argmin(np.maximum(atoms, pairs) + 1e-3 * (atoms + pairs), axis=1)
        filled[:, groups, chosen[items]] += work[items].T
    heaviest = np.empty(len(lengths))
    heaviest[longest] = np.where(np.isinf(filled), 0.0, filled).max(axis=(0, 2))
    return chosen, heaviest
