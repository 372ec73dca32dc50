"""What a packed batch promises to the models."""

from dataclasses import replace

import numpy as np
import pytest

from forgefield.data.batching import Capacity, needed_capacity, pack_graph, pack_labels, round_up
from forgefield.data.neighbors import neighbor_pairs
from forgefield.data.structures import Structure

CUTOFF = 3.0
ELEMENTS = (8, 1, 6)  # a model's own order


@pytest.fixture
def structures():
    """A molecule, a crystal cell smaller than the cutoff, and one atom without neighbours."""
    random = np.random.default_rng(0)
    molecule = Structure(
        np.array([6, 8, 1, 1, 1, 1]),
        random.uniform(0, 3, (6, 3)),
        energy=-10.0,
        forces=random.normal(size=(6, 3)),
        energy_weight=2.0,
    )
    crystal = Structure(
        np.array([6, 6]),
        np.array([[0, 0, 0], [1.2, 1.1, 1.0]]),
        np.diag([2.4, 2.5, 2.6]),
        np.ones(3, bool),
        forces=np.ones((2, 3)),
        virial=np.eye(3),
        virial_weight=0.5,
    )
    return [molecule, crystal, Structure(np.array([8]), np.zeros((1, 3)), energy=-1.0)]


@pytest.fixture
def pairs(structures):
    return [neighbor_pairs(s, CUTOFF) for s in structures]


@pytest.fixture
def graph(structures, pairs):
    capacity = Capacity(structures=5, atoms=16, pairs=160, neighbors=70)
    return pack_graph(structures, pairs, ELEMENTS, CUTOFF, capacity)


def vectors(graph):
    return graph.positions[graph.pair_receiver] - graph.positions[graph.pair_sender] + graph.pair_shift


def test_atoms_follow_one_another_and_padding_belongs_to_the_last_structure(structures, graph):
    assert graph.atom_mask.tolist() == [1.0] * 9 + [0.0] * 7
    assert graph.n_atoms.tolist() == [6, 2, 1, 0, 0]
    assert graph.atom_structure.tolist() == [0] * 6 + [1] * 2 + [2] + [4] * 7
    assert [ELEMENTS[i] for i in graph.species[:9]] == [z for s in structures for z in s.numbers]
    apart = structures[1].positions[1] - structures[1].positions[0]
    np.testing.assert_allclose(graph.positions[7] - graph.positions[6], apart, rtol=1e-14)


def test_float32_keeps_distances_far_from_the_origin(structures, pairs):
    """At 1000 Å float32 has steps of 6e-5 Å, which positions have no more once each structure is centered."""
    away = [replace(s, positions=s.positions + 1000.0) for s in structures]
    capacity = needed_capacity(structures, pairs)
    graph = pack_graph(away, pairs, ELEMENTS, CUTOFF, capacity, np.float32)
    expected = pack_graph(structures, pairs, ELEMENTS, CUTOFF, capacity)
    np.testing.assert_allclose(vectors(graph), vectors(expected), atol=1e-6)


def test_pairs_are_within_the_cutoff_and_padded_ones_beyond_it(pairs, graph):
    n_pairs = sum(len(p.receiver) for p in pairs)
    lengths = np.linalg.norm(vectors(graph), axis=1)
    assert lengths[:n_pairs].max() < CUTOFF
    assert lengths[n_pairs:].min() > CUTOFF
    real_atoms = graph.atom_structure[graph.pair_receiver[:n_pairs]]
    np.testing.assert_array_equal(real_atoms, graph.pair_structure[:n_pairs])
    np.testing.assert_array_equal(real_atoms, graph.atom_structure[graph.pair_sender[:n_pairs]])


def test_needed_capacity_is_enough_and_rounded(structures, pairs):
    needed = needed_capacity(structures, pairs)
    assert needed.atoms % 8 == 0
    assert needed.pairs % 16 == 0
    graph = pack_graph(structures, pairs, ELEMENTS, CUTOFF, needed)
    assert graph.positions.shape == (needed.atoms, 3)
    assert graph.neighbors.atom.size == needed.slots


@pytest.mark.parametrize("field", Capacity._fields)
def test_too_small_a_capacity_is_refused(structures, pairs, field):
    needed = needed_capacity(structures, pairs)
    small = needed._replace(**{field: getattr(needed, field) - 1})
    with pytest.raises(ValueError, match="does not fit"):
        pack_graph(structures, pairs, ELEMENTS, CUTOFF, small)


def test_an_element_that_the_model_lacks_is_refused(structures, pairs):
    with pytest.raises(ValueError, match=r"not among \(1, 6\)"):
        pack_graph(structures, pairs, (1, 6), CUTOFF, needed_capacity(structures, pairs))


def test_a_batch_without_any_pair_still_has_one_to_point_at():
    lone = [Structure(np.array([8]), np.zeros((1, 3)))]
    none = [neighbor_pairs(lone[0], CUTOFF)]
    graph = pack_graph(lone, none, ELEMENTS, CUTOFF, needed_capacity(lone, none))
    assert len(graph.pair_receiver) == 16
    assert np.linalg.norm(vectors(graph), axis=1).min() > CUTOFF
    assert not graph.neighbors.sign.any()


def test_an_empty_batch_is_all_padding():
    graph = pack_graph([], [], ELEMENTS, CUTOFF, Capacity(2, 8, 16, 4), np.float32)
    assert not graph.atom_mask.any()
    assert not graph.n_atoms.any()
    assert graph.positions.dtype == np.float32


def test_labels_lose_their_shifts_and_absent_ones_weigh_nothing(structures):
    labels = pack_labels(structures, {8: -2.0, 1: -0.5, 6: -1.0}, Capacity(5, 16, 16, 4))
    assert labels.energy.tolist() == [-10.0 + 2.0 + 1.0 + 4 * 0.5, 0.0, -1.0 + 2.0, 0.0, 0.0]
    assert labels.energy_weight.tolist() == [2.0, 0.0, 1.0, 0.0, 0.0]
    assert labels.forces_weight.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert labels.virial_weight.tolist() == [0.0, 0.5, 0.0, 0.0, 0.0]
    np.testing.assert_array_equal(labels.forces[:6], structures[0].forces)
    np.testing.assert_array_equal(labels.forces[6:8], structures[1].forces)
    assert not labels.forces[8:].any()


def test_large_shifts_are_subtracted_before_rounding_to_float32():
    """-20000.001 eV in float32 would be off by 2 meV; the residual is not."""
    structure = Structure(np.array([6]), np.zeros((1, 3)), energy=-20000.001)
    labels = pack_labels([structure], {6: -20000.0}, Capacity(1, 8, 16, 1), np.float32)
    assert labels.energy[0] == pytest.approx(-0.001, rel=1e-5)


@pytest.mark.parametrize(("value", "step", "expected"), [(0, 8, 8), (1, 8, 8), (8, 8, 8), (9, 8, 16)])
def test_round_up(value, step, expected):
    assert round_up(value, step) == expected
