"""Which structures make which batch, and the few shapes that all batches of a training are packed into."""

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np

from forgefield.data.batching import ATOM_STEP, PAIR_STEP, Capacity, round_up
from forgefield.data.slots import ATOMS_PER_ROW, slots_per_row
from forgefield.errors import UserError

MAX_SHAPES = 3
# A further shape costs a compilation: it must save this share of the work, and the work of this many steps.
WORTHWHILE_SHARE, WORTHWHILE_STEPS = 0.05, 200
CANDIDATES = 24
# structures whose needs are computed at once
BLOCK = 16384


class Sizes(NamedTuple):
    """Of n structures: (n,) atoms, (n,) undirected pairs, and neighbors of each of their atoms, one after another."""

    atoms: np.ndarray
    pairs: np.ndarray
    neighbors: np.ndarray

    def neighbors_of(self, rows: np.ndarray) -> np.ndarray:
        """The neighbors of each atom of some structures, in their order."""
        lengths = self.atoms[rows]
        starts = (np.cumsum(self.atoms) - self.atoms)[rows]
        return self.neighbors[np.arange(lengths.sum()) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)]


def epoch_order(n: int, seed: int, epoch: int) -> np.ndarray:
    """The order of ``n`` structures in an epoch: a pure function of its arguments, so any process can compute it."""
    return np.random.default_rng([seed, epoch]).permutation(n)


def full_batches(order: np.ndarray, batch: int) -> np.ndarray:
    """``order`` without the structures of an incomplete last batch."""
    return order[: len(order) - len(order) % batch]


def check_full_batch(n: int, batch: int) -> None:
    """UserError where ``n`` structures make no batch."""
    if n < batch:
        raise UserError(
            f"training.drop_last leaves nothing of {n} training structures, which do not fill one batch of {batch}; "
            "lower training.batch (train_batch_size), or leave out drop_last"
        )


def split_batches(order: np.ndarray, batch: int) -> list[np.ndarray]:
    """Consecutive batches of ``order``; the last one may be short."""
    return [order[i : i + batch] for i in range(0, len(order), batch)]


def batch_needs(sizes: Sizes, order: np.ndarray, batch: int, parts: int) -> np.ndarray:
    """Atoms, pairs and neighbor slots of a row, as packed, that the largest part of each batch needs.

    Args:
        sizes: of all structures.
        order: (n,) rows of the structures, batch after batch.
        batch: structures per batch.
        parts: what each batch is divided into.

    Returns:
        (ceil(n / batch), 3) integers.
    """
    # in blocks of whole batches: the memory that this takes is bounded
    blocks = split_batches(order, batch * max(BLOCK // batch, 1))
    return np.concatenate([_needs_of_block(sizes, block, batch, parts) for block in blocks])


def _needs_of_block(sizes: Sizes, order: np.ndarray, batch: int, parts: int) -> np.ndarray:
    full, rest = divmod(len(order), batch)
    short = np.array([len(part) for part in np.array_split(range(rest), parts) if len(part)], dtype=np.int64)
    lengths = np.concatenate([np.full(full * parts, batch // parts), short])
    part_starts = np.cumsum(lengths) - lengths
    batch_starts = np.arange(0, full * parts + len(short), parts)
    atoms = np.add.reduceat(sizes.atoms[order], part_starts)
    pairs = np.add.reduceat(sizes.pairs[order], part_starts)
    slots = slots_per_row(sizes.neighbors_of(order), atoms)
    atoms, pairs, slots = (np.maximum.reduceat(of_parts, batch_starts) for of_parts in (atoms, pairs, slots))
    return np.stack([_rounded(atoms, ATOM_STEP), _rounded(pairs + 1, PAIR_STEP), slots], axis=1)


def choose_capacities(counts: Mapping[tuple[int, int, int], int], structures: int) -> list[Capacity]:
    """At most :data:`MAX_SHAPES` capacities, ascending, the last of which holds every batch.

    Args:
        counts: how many batches of the whole training have each need of :func:`batch_needs`.
        structures: the number of structures each capacity holds.
    """
    needs = np.array(sorted(counts), dtype=np.int64)
    order = np.argsort(_cost(needs), kind="stable")
    number = np.array([counts[tuple(need)] for need in needs[order].tolist()])
    # a shape serves all batches up to some cost, so it must hold the largest need in each direction among them
    shapes = np.maximum.accumulate(needs[order], axis=0)
    done = np.cumsum(number)
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


def largest_capacity(sizes: Sizes, structures: int) -> Capacity:
    """What any so many structures fit into."""
    atoms, pairs = (np.sort(each)[-structures:].sum() for each in (sizes.atoms, sizes.pairs))
    slots = ATOMS_PER_ROW * int(sizes.neighbors.max(initial=1))
    return Capacity(structures, round_up(int(atoms), ATOM_STEP), round_up(int(pairs) + 1, PAIR_STEP), slots)


def _work(ends: tuple[int, ...], done: np.ndarray, cost: np.ndarray) -> float:
    """Total cost when batches up to each end (in order of cost) are packed into the shape at that end."""
    return float(np.diff(done[list(ends)], prepend=0) @ cost[list(ends)])


def _cost(needs: np.ndarray) -> np.ndarray:
    """Work of one batch, up to a factor: radial functions per pair and products per neighbor slot."""
    return needs[:, 1] + needs[:, 0] // ATOMS_PER_ROW * needs[:, 2]


def _rounded(values: np.ndarray, step: int) -> np.ndarray:
    return np.maximum(-(-values // step) * step, step)
