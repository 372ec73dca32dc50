"""Statistics against a plain float64 computation of the same numbers, in whatever order the data comes."""

from dataclasses import replace

import numpy as np
import pytest

from forgefield.config.evaluation import StatisticsConfig
from forgefield.data.structures import Structure
from forgefield.models.inference import predict
from forgefield.models.potential import save_potential
from forgefield.statistics import compute_statistics

ELEMENTS, SHIFTS = np.array([1, 6, 8]), np.array([-13.7, -1035.0, -2043.0])


@pytest.fixture
def structures():
    """Sixty structures of 1 to 12 atoms; some lack energies or forces, or weigh nothing."""
    random, structures = np.random.default_rng(0), []
    for i in range(60):
        n = random.integers(1, 13)
        numbers = random.choice(ELEMENTS, n)
        grid = np.stack(np.unravel_index(random.choice(27, n, replace=False), (3, 3, 3)), axis=1)
        energy = float((numbers[:, None] == ELEMENTS).sum(0) @ SHIFTS + n * random.normal(0, 0.1))
        structures.append(
            Structure(
                numbers,
                1.3 * grid + random.uniform(-0.1, 0.1, (n, 3)),
                energy=None if i % 7 == 3 else energy,
                forces=None if i % 5 == 2 else random.normal(size=(n, 3)),
                energy_weight=float(random.choice([0.0, 0.5, 1.0, 2.0])),
                source_index=i,
            )
        )
    return structures


def reference(structures, model_energies):
    """Shifts by the normal equations, mean absolute residual per atom, and the force RMS."""
    used = [(s, e) for s, e in zip(structures, model_energies, strict=True) if s.energy is not None and s.energy_weight]
    counts = np.array([[(s.numbers == z).sum() for z in ELEMENTS] for s, _ in used], float)
    targets, sizes = np.array([s.energy - e for s, e in used]), counts.sum(axis=1)
    weights = np.array([s.energy_weight for s, _ in used]) / sizes**2
    shifts = np.linalg.solve(counts.T @ (weights[:, None] * counts), counts.T @ (weights * targets))
    forces = np.concatenate([s.forces for s in structures if s.forces is not None])
    return shifts, np.abs((targets - counts @ shifts) / sizes).mean(), np.sqrt(np.mean(forces**2))


@pytest.mark.parametrize("pretrained", [False, True])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_exact_in_every_order(structures, untrained, write_store, tmp_path, pretrained, seed):
    old = np.array([-10.0, -1000.0, -2000.0])
    potential = replace(untrained, pretrained=pretrained, energy_shifts=dict(zip((1, 6, 8), old.tolist(), strict=True)))
    energies = [p.energy for p in predict(potential, structures)] if pretrained else [0.0] * len(structures)
    shifts, mae, force_rms = reference(structures, energies)
    if seed is not None:
        structures = [structures[i] for i in np.random.default_rng(seed).permutation(len(structures))]
    save_potential(potential, tmp_path / "model")
    statistics = compute_statistics(write_store(structures), tmp_path / "model", StatisticsConfig())
    expected = old * pretrained + shifts
    np.testing.assert_allclose([statistics["energy_shifts"][s] for s in "HCO"], expected, rtol=1e-12)
    assert statistics["residual"]["after"]["mae"] == pytest.approx(mae, rel=1e-9)
    assert statistics["force_rms"] == pytest.approx(force_rms, rel=1e-12)
    histogram = statistics["histograms"]["residual_per_atom"]
    assert sum(histogram["counts"]) == statistics["n_energies"]
    assert len(histogram["edges"]) == len(histogram["counts"]) + 1
