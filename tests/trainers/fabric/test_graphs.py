from dataclasses import replace

import numpy as np
import torch
from labelled_data import SHIFTS, labelled_structures

from forgefield.data.batching import Capacity
from forgefield.trainers.fabric.graphs import DirectedNeighbors

NEIGHBORS = DirectedNeighbors(3.0, tuple(SHIFTS), SHIFTS)
CAPACITY = Capacity(99, 999, 9999, 99)


def packed(structures):
    pairs = [NEIGHBORS.pairs(s) for s in structures]
    return NEIGHBORS.pack(structures, pairs, CAPACITY, np.dtype(np.float64)), pairs


def vectors(graph):
    return graph.positions[graph.receiver] - graph.positions[graph.sender] + graph.shift


def test_every_pair_stands_in_both_directions_and_is_shorter_than_the_cutoff():
    structures = labelled_structures(5)
    (graph, _), pairs = packed(structures)
    assert len(graph.sender) == 2 * sum(len(p.sender) for p in pairs)
    v = vectors(graph)
    assert torch.linalg.vector_norm(v, dim=1).max() < 3.0
    there = {tuple(x) for x in torch.cat([torch.stack([graph.sender, graph.receiver], 1), v], 1).tolist()}
    back = {tuple(x) for x in torch.cat([torch.stack([graph.receiver, graph.sender], 1), -v], 1).tolist()}
    assert there == back
    assert torch.equal(graph.atom_structure[graph.sender], graph.atom_structure[graph.receiver])


def test_float32_keeps_distances_far_from_the_origin():
    structures = labelled_structures(5)
    (expected, _), pairs = packed(structures)
    away = [replace(s, positions=s.positions + 1000.0) for s in structures]
    graph, _ = NEIGHBORS.pack(away, pairs, CAPACITY, np.dtype(np.float32))
    np.testing.assert_allclose(vectors(graph), vectors(expected), atol=2e-6)


def test_atoms_and_labels_follow_one_another_without_padding():
    structures = labelled_structures(5)
    (graph, labels), _ = packed(structures)
    assert graph.n_atoms.tolist() == [len(s) for s in structures]
    assert [list(SHIFTS)[i] for i in graph.species] == [z for s in structures for z in s.numbers]
    np.testing.assert_array_equal(labels.forces, np.concatenate([s.forces for s in structures]))
    assert labels.energy_weight.tolist() == [1, 1, 1, 0, 1]
    assert labels.virial_weight.tolist() == [1, 0, 1, 0, 1]
    first = structures[0].energy - sum(SHIFTS[z] for z in structures[0].numbers)
    assert abs(float(labels.energy[0]) - first) < 1e-10


def test_atoms_without_neighbors_make_an_empty_edge_list():
    (graph, _), _ = packed(labelled_structures(2)[1:])
    assert graph.sender.shape == (0,)
    assert graph.shift.shape == (0, 3)
