"""Structures packed into arrays of a few fixed shapes, so that a compiled function sees no new shape.

A batch holds its structures one after another in flat atom and pair arrays. Neighbours are also laid out densely, in
rows of slots, so that a model sums over them by batched matrix products and needs no scatter.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from forgefield.data.neighbors import NeighborPairs, neighbor_counts
from forgefield.data.slots import ATOMS_PER_ROW, NeighborSlots, neighbor_slots, slots_per_row
from forgefield.data.structures import Structure

ATOM_STEP, PAIR_STEP = 8, 16


class Graph(NamedTuple):
    """What a model reads. N atoms, P pairs and B structures include padding. Lengths in Å.

    Attributes:
        positions: (N, 3), of each structure from their mean.
        species: (N,) int32 index into the model's elements; 0 for padding.
        atom_mask: (N,) 1 for real atoms, 0 for padding.
        atom_structure: (N,) int32 structure of each atom; B - 1 for padding.
        pair_receiver, pair_sender: (P,) int32; each undirected pair once.
        pair_shift: (P, 3); vector = positions[receiver] - positions[sender] + shift, beyond the cutoff for padding.
        pair_structure: (P,) int32 structure of each pair.
        neighbors: every atom's neighbours in dense slots.
        n_atoms: (B,) real atoms of each structure; 0 for padding.
    """

    positions: np.ndarray
    species: np.ndarray
    atom_mask: np.ndarray
    atom_structure: np.ndarray
    pair_receiver: np.ndarray
    pair_sender: np.ndarray
    pair_shift: np.ndarray
    pair_structure: np.ndarray
    neighbors: NeighborSlots
    n_atoms: np.ndarray


class Labels(NamedTuple):
    """Reference values in eV and Å; weights are 0 where a label is absent or padding.

    Attributes:
        energy: (B,), the model's energy shifts already subtracted.
        forces: (N, 3).
        virial: (B, 3, 3).
        energy_weight, forces_weight, virial_weight: (B,).
    """

    energy: np.ndarray
    forces: np.ndarray
    virial: np.ndarray
    energy_weight: np.ndarray
    forces_weight: np.ndarray
    virial_weight: np.ndarray


class Target(NamedTuple):
    """An additional label (B, ...) in units of its own; the weight (B,) is 0 where it is absent or padding."""

    value: np.ndarray
    weight: np.ndarray


class Batch(NamedTuple):
    """What a step reads.

    Attributes:
        stop: above 0 where the process whose batch this is asks all to end the training: they hear of it by the step.
    """

    graph: Graph
    labels: Labels
    targets: Mapping[str, Target] = {}
    stop: np.ndarray = np.float32(0)


class Capacity(NamedTuple):
    """The sizes of a packed batch: structures B, atoms N, pairs P and neighbour slots K of a row of two atoms."""

    structures: int
    atoms: int
    pairs: int
    neighbors: int

    @property
    def slots(self) -> int:
        """Neighbour slots of all rows."""
        return self.atoms // ATOMS_PER_ROW * self.neighbors

    def holds(self, other: "Capacity") -> bool:
        return all(own >= needed for own, needed in zip(self, other, strict=True))


def needed_capacity(structures: Sequence[Structure], pairs: Sequence[NeighborPairs]) -> Capacity:
    """The least capacity for these structures, atoms and pairs rounded up so that similar batches share one shape."""
    counts = [neighbor_counts(len(s), p) for s, p in zip(structures, pairs, strict=True)]
    n_atoms = sum(map(len, structures))
    return Capacity(
        len(structures),
        round_up(n_atoms, ATOM_STEP),
        # one padded pair at least: padded neighbour slots of an edgeless batch need a pair to point at
        round_up(sum(len(p.receiver) for p in pairs) + 1, PAIR_STEP),
        int(slots_per_row(np.concatenate([np.zeros(0, np.int64), *counts]), np.array([n_atoms]))[0]),
    )


def round_up(value: int, step: int) -> int:
    return max(-(-value // step) * step, step)


def pack_graph(
    structures: Sequence[Structure],
    pairs: Sequence[NeighborPairs],
    elements: Sequence[int],
    cutoff: float,
    capacity: Capacity,
    dtype: np.dtype | type = np.float64,
) -> Graph:
    """Pack structures (Å) with their half neighbour lists.

    Args:
        structures: the batch, lengths in Å.
        pairs: their neighbour lists, within ``cutoff``.
        elements: atomic numbers in the model's order; every structure's elements must be among them.
        cutoff: in Å.
        capacity: the sizes of the arrays; an even number of atoms.
        dtype: of positions, shifts, masks and signs.

    Raises:
        ValueError: the structures need more than ``capacity``, or have another element.
    """
    if not capacity.holds(needed := needed_capacity(structures, pairs)):
        raise ValueError(f"a batch that needs {needed} does not fit {capacity}")
    b, n, p, k = capacity
    sizes = np.array([len(s) for s in structures], dtype=np.int32)
    n_real = int(sizes.sum())
    offsets = (np.cumsum(sizes) - sizes).astype(np.int32)
    receiver = _joined([x.receiver + o for x, o in zip(pairs, offsets, strict=True)], np.int32, p, 0)
    sender = _joined([x.sender + o for x, o in zip(pairs, offsets, strict=True)], np.int32, p, 0)
    n_pairs = np.array([len(x.receiver) for x in pairs], dtype=np.int64)
    real = slice(n_pairs.sum())
    shift = np.zeros((p, 3), dtype)
    shift[:, 0] = 2.0 * cutoff
    shift[real] = np.concatenate([np.zeros((0, 3)), *(x.shift for x in pairs)])
    index_of = np.full(119, -1, np.int32)
    index_of[list(elements)] = np.arange(len(elements))
    species = _joined([index_of[s.numbers] for s in structures], np.int32, n, 0)
    if (species < 0).any():
        raise ValueError(f"a structure has an element that is not among {tuple(elements)}")
    return Graph(
        positions=_joined([centered_positions(s) for s in structures], dtype, n, 0.0, (3,)),
        species=species,
        atom_mask=(np.arange(n) < n_real).astype(dtype),
        atom_structure=_joined([np.repeat(np.arange(len(sizes)), sizes)], np.int32, n, b - 1),
        pair_receiver=receiver,
        pair_sender=sender,
        pair_shift=shift,
        pair_structure=_joined([np.repeat(np.arange(len(sizes)), n_pairs)], np.int32, p, b - 1),
        neighbors=neighbor_slots(receiver[real], sender[real], n_real, n, k, dtype),
        n_atoms=_joined([sizes], np.int32, b, 0),
    )


def centered_positions(structure: Structure) -> np.ndarray:
    """(n, 3) positions from their mean, Å: far from the origin, float32 would lose digits of the distances."""
    return structure.positions - structure.positions.mean(axis=0)


def pack_labels(
    structures: Sequence[Structure],
    energy_shifts: dict[int, float],
    capacity: Capacity,
    dtype: np.dtype | type = np.float64,
) -> Labels:
    """Pack reference labels (eV, Å), the sum of ``energy_shifts`` (eV by atomic number) subtracted in float64."""
    b, n = capacity.structures, capacity.atoms
    labels = Labels(*(np.zeros(s, dtype) for s in [(b,), (n, 3), (b, 3, 3), (b,), (b,), (b,)]))
    start = 0
    for i, s in enumerate(structures):
        if s.energy is not None:
            labels.energy[i] = s.energy - shift_energy(s, energy_shifts)
            labels.energy_weight[i] = s.energy_weight
        if s.forces is not None:
            labels.forces[start : start + len(s)] = s.forces
            labels.forces_weight[i] = s.forces_weight
        if s.virial is not None:
            labels.virial[i] = s.virial
            labels.virial_weight[i] = s.virial_weight
        start += len(s)
    return labels


def shift_energy(structure: Structure, energy_shifts: dict[int, float]) -> float:
    """The sum of per-element energy shifts over a structure's atoms, in float64."""
    numbers, counts = np.unique(structure.numbers, return_counts=True)
    return float(sum(c * energy_shifts[int(z)] for z, c in zip(numbers, counts, strict=True)))


def _joined(parts: Sequence[np.ndarray], dtype, length: int, fill, tail: tuple[int, ...] = ()) -> np.ndarray:
    """Concatenate ``parts`` and fill up to ``length`` rows."""
    out = np.full((length, *tail), fill, dtype)
    if len(parts):
        joined = np.concatenate(parts)
        out[: len(joined)] = joined
    return out
