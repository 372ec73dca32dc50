"""Which structures make which batch, and the few shapes that all batches of a training are packed into."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from forgefield.data.batching import ATOM_STEP, PAIR_STEP, Capacity

MAX_SHAPES = 3
# A further shape costs a compilation: it must save this share of the work, and the work of this many steps.
WORTHWHILE_SHARE, WORTHWHILE_STEPS = 0.05, 200
CANDIDATES = 24


class Sizes(NamedTuple):
    """Per structure: atoms, undirected pairs, and the most neighbors that one of its atoms has; each (n,)."""

    atoms: np.ndarray
    pairs: np.ndarray
    neighbors: np.ndarray


def epoch_order(n: int, seed: int, epoch: int) -> np.ndarray:
    """The order of ``n`` structures in an epoch: a pure function of its arguments, so any process can compute it."""
    return np.random.default_rng([seed, epoch]).permutation(n)


def split_batches(order: np.ndarray, batch: int, drop_last: bool = False) -> list[np.ndarray]:
    """Consecutive batches of ``order``; the last one may be short unless it is dropped."""
    stop = len(order) - len(order) % batch if drop_last else len(order)
    return [order[i : min(i + batch, stop)] for i in range(0, stop, batch)]


def batch_needs(sizes: Sizes, batches: Sequence[np.ndarray], parts: int) -> np.ndarray:
    """(len(batches), 3) atoms, pairs and neighbor slots that the largest part of each batch needs, as packed."""
    rows = np.concatenate(batches)
    lengths = [[len(p) for p in np.array_split(b, parts) if len(p)] for b in batches]
    flat = np.concatenate(lengths)
    part_starts = np.cumsum(flat) - flat
    batch_starts = np.cumsum([0, *(len(x) for x in lengths[:-1])])
    atoms = np.maximum.reduceat(np.add.reduceat(sizes.atoms[rows], part_starts), batch_starts)
    pairs = np.maximum.reduceat(np.add.reduceat(sizes.pairs[rows], part_starts), batch_starts)
    neighbors = np.maximum.reduceat(np.maximum.reduceat(sizes.neighbors[rows], part_starts), batch_starts)
    return np.stack([_rounded(atoms, ATOM_STEP), _rounded(pairs + 1, PAIR_STEP), np.maximum(neighbors, 1)], axis=1)


def choose_capacities(needs: np.ndarray, structures: int) -> list[Capacity]:
    """At most :data:`MAX_SHAPES` capacities, ascending, the last of which holds every batch in ``needs``.

    Args:
        needs: (m, 3) from :func:`batch_needs`, one row per batch of the whole training.
        structures: the number of structures each capacity holds.
    """
    needs, counts = np.unique(needs, axis=0, return_counts=True)
    order = np.argsort(_cost(needs), kind="stable")
    # a shape serves all batches up to some cost, so it must hold the largest need in each direction among them
    shapes = np.maximum.accumulate(needs[order], axis=0)
    done = np.cumsum(counts[order])
    cost = _cost(shapes)
    last = len(shapes) - 1
    candidates = np.unique(np.searchsorted(done, np.linspace(0, done[-1], CANDIDATES, endpoint=False)[1:]))
    chosen, work = (last,), float(done[-1] * cost[last])
    for more in range(1, MAX_SHAPES):
        options = [(*c, last) for c in combinations(candidates[candidates < last].tolist(), more)]
        if not options:
            break
        best = min(options, key=lambda ends: _work(ends, done, cost))
        saved = work - _work(best, done, cost)
        if saved < max(WORTHWHILE_SHARE * work, WORTHWHILE_STEPS * work / done[-1]):
            break
        chosen, work = best, work - saved
    return [Capacity(structures, *(int(x) for x in shapes[i])) for i in chosen]


def _work(ends: tuple[int, ...], done: np.ndarray, cost: np.ndarray) -> float:
    """Total cost when batches up to each end (in order of cost) are packed into the shape at that end."""
    return float(np.diff(done[list(ends)], prepend=0) @ cost[list(ends)])


def _cost(needs: np.ndarray) -> np.ndarray:
    """Work of one batch, up to a factor: radial functions per pair and products per neighbor slot."""
    return needs[:, 1] + needs[:, 0] * needs[:, 2]


def _rounded(values: np.ndarray, step: int) -> np.ndarray:
    return np.maximum(-(-values // step) * step, step)
