import ase.io
import jax
import numpy as np
import pytest

from forgefield.data.loaders import BatchLoader
from forgefield.data.packing import PackedNeighbors
from forgefield.data.reader import StructureList
from forgefield.data.structures import Structure
from forgefield.errors import UserError

NEIGHBORS = PackedNeighbors(4.0, (1, 6), {1: -13.0, 6: -1030.0})


def structures(n, seed=0):
    rng = np.random.default_rng(seed)
    return [
        Structure(
            rng.choice([1, 6], size),
            2.0 * np.arange(size)[:, None] + rng.uniform(-0.5, 0.5, (size, 3)),
            energy=-100.0 * i,
            forces=rng.normal(size=(size, 3)),
            source_index=i,
        )
        for i, size in enumerate(rng.integers(1, 12, n))
    ]


def loader(data, batch=4, **settings):
    made = BatchLoader(StructureList(data), NEIGHBORS, batch, **settings)
    made.plan(3)
    return made


def equal(one, other):
    return all(
        np.array_equal(a, b)
        for x, y in zip(one, other, strict=True)
        for a, b in zip(jax.tree.leaves(x.batch.graph), jax.tree.leaves(y.batch.graph), strict=True)
    )


def test_batches_are_a_pure_function_of_seed_and_epoch():
    data = structures(11)
    first, second = loader(data, seed=3), loader(data, seed=3)
    list(second.epoch(0))  # what was read before does not matter
    assert equal(list(first.epoch(1)), list(second.epoch(1)))
    rows = [np.concatenate([b.rows for b in first.epoch(e)]).tolist() for e in range(2)]
    assert rows[0] != rows[1]
    assert sorted(rows[0]) == sorted(rows[1]) == list(range(11))


def test_labels_have_the_energy_shifts_subtracted():
    data = structures(4)
    (loaded,) = loader(data, dtype=np.float64).epoch(0)
    for slot, row in enumerate(loaded.rows):
        carbon = (data[row].numbers == 6).sum()
        hydrogen = (data[row].numbers == 1).sum()
        assert loaded.batch.labels.energy[slot] == pytest.approx(data[row].energy + 1030.0 * carbon + 13.0 * hydrogen)


def test_a_short_last_batch_is_padded_with_weight_0_or_dropped():
    data = structures(10)
    *_, last = loader(data, seed=0).epoch(0)
    assert len(last.rows) == 2
    assert last.batch.labels.energy_weight.tolist() == [1, 1, 0, 0]
    assert last.batch.graph.n_atoms.tolist() == [*(len(data[r]) for r in last.rows), 0, 0]
    assert len(loader(data, seed=0, drop_last=True)) == len(list(loader(data, seed=0, drop_last=True).epoch(0))) == 2
    with pytest.raises(UserError, match=r"lower training\.batch"):
        loader(data, batch=11, drop_last=True)


def test_parts_share_one_shape_and_hold_every_structure_once():
    data = structures(9)
    batches = list(loader(data, batch=4, parts=2, seed=0).epoch(0))
    assert [b.part_lengths for b in batches] == [(2, 2), (2, 2), (1, 0)]
    for b in batches:
        assert len({tuple(x.shape for x in jax.tree.leaves(part.graph)) for part in b.parts}) == 1
        assert sum(part.labels.energy_weight.sum() for part in b.parts) == len(b.rows)
    with pytest.raises(UserError, match="multiple of 2"):
        loader(data, batch=3, parts=2)


def test_nothing_changes_when_no_list_fits_in_the_cache():
    data = structures(11)
    assert equal(list(loader(data, seed=1).epoch(2)), list(loader(data, seed=1, cache_bytes=0).epoch(2)))


def test_lists_are_made_once_where_they_fit(monkeypatch):
    from forgefield.data import packing

    calls = []
    made = packing.neighbor_pairs
    monkeypatch.setattr(packing, "neighbor_pairs", lambda s, cutoff: calls.append(s.source_index) or made(s, cutoff))
    reused = loader(structures(6), seed=0)
    list(reused.epoch(0)), list(reused.epoch(1))
    assert sorted(calls) == list(range(6))


def test_an_element_that_the_model_does_not_know_is_named():
    odd = Structure(np.array([1, 17]), np.array([[0.0, 0, 0], [1.3, 0, 0]]), source_index=7)
    with pytest.raises(UserError, match=r"frame 7: the model does not know Cl \(it knows H, C\)"):
        loader([*structures(3), odd])


def test_no_structures():
    with pytest.raises(UserError, match="no structures"):
        loader([])


def test_epochs_beyond_those_that_were_planned_fit_too(monkeypatch):
    monkeypatch.setattr("forgefield.data.loaders.PLANNED_EPOCHS", 1)
    made = loader(structures(30), batch=4, seed=1)
    made.plan(50)
    assert len(made.capacities) <= 4
    assert sum(len(list(made.epoch(epoch))) for epoch in range(50)) == 50 * len(made)


def test_filled_shares_are_those_of_the_packed_batches():
    for settings in ({"seed": 1}, {"seed": 1, "parts": 2}, {"seed": None}, {"seed": 2, "drop_last": True}):
        made = loader(structures(30), batch=4, **settings)
        real, packed = np.zeros(3), np.zeros(3)
        for epoch in range(3):
            for loaded in made.epoch(epoch):
                rows = loaded.rows
                counted = made.sizes.atoms[rows].sum(), made.sizes.pairs[rows].sum(), 2 * made.sizes.pairs[rows].sum()
                real += counted
                for graph, *_ in loaded.parts:
                    packed += graph.atom_mask.size, graph.pair_receiver.size, graph.neighbors.atom.size
        np.testing.assert_allclose(made.filled, real / packed, rtol=1e-12)


@pytest.mark.parametrize(
    ("path", "cutoff", "elements", "batch"),
    [("resources/glycolaldehyde/glycolaldehyde_pbe.npz", 5.0, (1, 6, 8), 10), ("3bpa", 5.0, (1, 6, 7, 8), 8)],
)
def test_most_padded_pairs_are_real_on_real_data(request, path, cutoff, elements, batch):
    if path == "3bpa":
        frames = ase.io.read(request.getfixturevalue("shared_data") / "molecules" / "3bpa_train_300K.xyz", ":200")
        data = [Structure(a.numbers, a.positions) for a in frames]
    else:
        with np.load(path) as file:
            data = [Structure(file["z"], positions) for positions in file["R"][:200]]
    made = BatchLoader(StructureList(data), PackedNeighbors(cutoff, elements), batch, seed=0)
    made.plan(20)
    assert made.filled.pairs >= 0.85
    assert made.filled.atoms >= 0.85
