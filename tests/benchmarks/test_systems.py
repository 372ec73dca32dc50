"""The batches are the same in every process, and the stand-ins resemble what they stand for."""

import numpy as np
import pytest
import systems

from forgefield.data.neighbors import neighbor_pairs


def mean_neighbors(system: systems.System) -> float:
    batch = [system.pool[row] for row in system.rows]
    return 2 * sum(len(neighbor_pairs(s, 5.0).receiver) for s in batch) / sum(map(len, batch))


@pytest.mark.parametrize("name", systems.SYSTEMS)
def test_a_system_is_built_the_same_again(name):
    first, second = systems.SYSTEMS[name](), systems.SYSTEMS[name]()
    assert first.rows.tolist() == second.rows.tolist()
    assert len({len(s) for s in first.pool}) == 1
    for a, b in zip(first.pool, second.pool, strict=True):
        np.testing.assert_array_equal(a.positions, b.positions)


@pytest.mark.parametrize("name", ["3bpa", "catcher"])
def test_stand_ins_have_the_size_and_density_of_the_real_ones(name, monkeypatch, shared_data, tmp_path):
    real = systems.SYSTEMS[name]()
    monkeypatch.setattr(systems, "SHARED", tmp_path)
    stand_in = systems.SYSTEMS[name]()
    assert "stand-in" in stand_in.origin
    assert "stand-in" not in real.origin
    assert sorted(stand_in.pool[0].numbers) == sorted(real.pool[0].numbers)
    assert mean_neighbors(stand_in) == pytest.approx(mean_neighbors(real), rel=0.1)


def test_labels_belong_to_the_batch():
    system = systems.ethanol()
    forces = np.arange(2 * 9 * 3.0).reshape(-1, 3)
    pool = systems.labelled(system, np.array([1.0, 2.0]), forces)
    first, second = (pool[row] for row in system.rows)
    assert (first.energy, second.energy) == (1.0, 2.0)
    np.testing.assert_array_equal(second.forces, forces[9:])
    assert all(not s.forces.any() for i, s in enumerate(pool) if i not in system.rows)
