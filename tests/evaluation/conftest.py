"""A run's files made without training: stores, a foundation model, its statistics and a model that differs from it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from forgefield.config.evaluation import EvaluationConfig, StatisticsConfig
from forgefield.config.training import TrainingConfig
from forgefield.data.store import StoreWriter
from forgefield.data.structures import Structure
from forgefield.evaluation.metrics_file import FORMAT
from forgefield.files import write_json
from forgefield.models.potential import save_potential
from forgefield.statistics import compute_statistics
from forgefield.units import Units


@pytest.fixture(scope="session")
def foundation(random_mace):
    """A small MACE for H, C and O with random weights, said to be pretrained."""
    return replace(random_mace(scale=5.0), pretrained=True, energy_shifts={1: -13.0, 6: -1030.0, 8: -2040.0})


@pytest.fixture(scope="session")
def structures():
    """Eleven labelled structures of four or five atoms: every third without energy, every fourth without forces."""
    rng = np.random.default_rng(0)
    made = []
    for i in range(11):
        n = 4 + i % 2
        periodic = i % 5 < 2
        made.append(
            Structure(
                numbers=rng.choice([1, 6, 8], n),
                positions=np.arange(n)[:, None] * [1.1, 0.3, 0.0] + rng.normal(0, 0.1, (n, 3)),
                cell=np.eye(3) * 6.0 if periodic else np.zeros((3, 3)),
                pbc=np.full(3, periodic),
                energy=None if i % 3 == 2 else -500.0 * n + rng.normal(),
                forces=None if i % 4 == 3 else rng.normal(0, 1, (n, 3)),
                virial=rng.normal(0, 1, (3, 3)) if periodic else None,
                source_index=100 + i,
            )
        )
    return made


@pytest.fixture(scope="session")
def run_files(tmp_path_factory, foundation, structures):
    """Paths ``data``, ``foundation``, ``statistics`` and ``run``, and a ``config``; not to be changed."""
    root = tmp_path_factory.mktemp("results")
    paths = SimpleNamespace(
        data=root / "data",
        foundation=root / "foundation",
        statistics=root / "statistics.json",
        run=root / "runs" / "tiny",
    )
    write_store(paths.data / "train.h5", structures)
    write_store(paths.data / "test.h5", sorted(structures, key=len), packed=True)
    trained = {k: 1.1 * v for k, v in foundation.parameters.items()}
    save_potential(foundation, paths.foundation)
    save_potential(replace(foundation, parameters=trained), paths.run / "model")
    write_json(paths.statistics, compute_statistics(paths.data / "train.h5", paths.foundation, StatisticsConfig()))
    evaluation = EvaluationConfig(splits=["test"])
    training = TrainingConfig(eval_batch=4)
    paths.config = SimpleNamespace(training=training, evaluation=evaluation, backend="jax", local_devices=1)
    return paths


def write_store(path, structures, packed=False):
    """Structures in eV and Å to a store in kJ/mol and nm; a packed one has them sorted by size."""
    with StoreWriter(
        path,
        n_structures=len(structures),
        max_atoms=5,
        units=Units("kJ/mol", "nm"),
        dtype=np.float64,
        has_virial=True,
        attributes={"source": "made up", "source_sha256": "", "split": path.stem},
        packed_sizes=np.array([len(s) for s in structures]) if packed else None,
    ) as writer:
        writer.append(structures)


@pytest.fixture
def errors():
    """A function that makes errors of one quantity as ``metrics.json`` has them, with changes as keywords."""
    return _errors


def _errors(**changes):
    usual = {"n": 3, "absent": 0, "mae": 0.1, "rmse": 0.2, "max": 0.4, "mae_interval": [0.05, 0.15]}
    return usual | {"rmse_interval": [0.1, 0.3], "r2": 0.9, "median": 0.08, "p95": 0.35} | changes


@pytest.fixture
def metrics_content():
    """A small ``metrics.json``: one split, a run from scratch, two elements."""
    energies, forces = ("energy_per_atom", "energy", "relative_energy"), ("forces", "force_norms", "force_angles")
    part = {"structures": 1, "atoms": 3, "errors": {"trained": {quantity: _errors() for quantity in forces}}}
    ways = {"element": {"H": part, "O": part}, "composition": {}, "size": {}, "file": {}, "compositions_left_out": 0}
    return {
        "format": FORMAT,
        "model": "0" * 64,
        "predictions": {"test": "1" * 64},
        "units": {"forces": "eV/angstrom"},
        "bootstrap": {"level": 0.95, "resamples": 1000, "blocks": 1000},
        "splits": {"test": {"trained": {quantity: _errors() for quantity in (*energies, *forces)}}},
        "parts": {"test": ways},
    }
