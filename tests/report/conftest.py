"""Runs whose predictions are made up, as the report finds them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import h5py
import numpy as np
import pytest
import yaml
from ase.data import atomic_numbers
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from forgefield.evaluation.metrics_file import FORMAT
from forgefield.evaluation.predictions import create_predictions, write_rows
from forgefield.evaluation.style import ORIGIN
from forgefield.files import sha256_of, write_json

MODEL = "0" * 64
VARIANTS = {"foundation": 1.0, "refitted": 0.5, "finetuned": 0.1}
FORMULAS = ("OHH", "CHHHOH")
QUANTITIES = ("energy_per_atom", "energy", "relative_energy", "forces", "force_norms", "force_angles")


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Path]:
    """Writes a run's directory: water and methanol in turns, from two files, with errors of known size."""

    def make(
        root: Path, name: str, n: int, scale: float = 1.0, repeat: int = 1, lr: float = 1e-3, sizes: Mapping = VARIANTS
    ) -> Path:
        random = np.random.default_rng(n)
        species = [np.repeat([atomic_numbers[s] for s in FORMULAS[i % 2]], repeat) for i in range(n)]
        most = max(map(len, species))
        n_atoms = np.array([len(s) for s in species])
        real = np.arange(most) < n_atoms[:, None]
        columns = {
            "n_atoms": n_atoms,
            "source_index": np.arange(n),
            "species": np.array([np.pad(s, (0, most - len(s))) for s in species]),
            "reference/energy": random.normal(-400, 1, n),
            "reference/forces": random.normal(0, 1, (n, most, 3)) * real[:, :, None],
        }
        for variant, size in sizes.items():
            errors = scale * size * random.normal(0, 0.1, (n, most, 3)) * real[:, :, None]
            columns[f"{variant}/energy"] = columns["reference/energy"] + scale * size
            columns[f"{variant}/forces"] = columns["reference/forces"] + errors
        path = root / "runs" / name
        path.mkdir(parents=True)
        sources = [("a.xyz", 0), ("b.xyz", 10)]
        with h5py.File(path / "predictions_test.h5", "w") as file:
            layout = {"n": n, "max_atoms": most, "stress": False, "model": MODEL}
            create_predictions(file, "test", [*sizes], **layout, sources=sources)
            write_rows(file, 0, columns)
        origin = {"model": MODEL, "predictions": {"test": sha256_of(path / "predictions_test.h5")}}
        write_json(path / "metrics.json", origin | _metrics(n, int(n_atoms.sum()), scale, sizes))
        settings = {"name": name, "dataset": "molecules", "training": {"lr": lr, "epochs": 3}}
        (path / "config.yaml").write_text(yaml.safe_dump(settings))
        trained = {"at": "2026-01-01T00:00:00+00:00", "epochs": 3, "best_epoch": 2, "seconds": 90.0 * scale}
        write_json(path / "provenance.json", {"git_commit": "0123abc", "sha256": {"a.xyz": "aaaa"}, "trained": trained})
        Image.effect_noise((1000, 500), 80).save(path / "parity_forces.png", pnginfo=_origin(path / "metrics.json"))
        return path

    return make


def _origin(metrics: Path) -> PngInfo:
    info = PngInfo()
    info.add_text(ORIGIN, sha256_of(metrics))
    return info


def _metrics(n: int, atoms: int, scale: float, sizes: Mapping[str, float]) -> dict:
    def errors(count: int, mae: float) -> dict:
        numbers = {"mae": mae, "rmse": 1.2 * mae, "max": 3 * mae, "median": mae, "p95": 2 * mae, "r2": 0.9}
        return {"n": count, "absent": 0, **numbers, "mae_interval": None, "rmse_interval": None}

    def of_variant(size: float) -> dict:
        counts = {name: 3 * atoms if name == "forces" else n for name in QUANTITIES}
        return {name: errors(counts[name], scale * size * 0.1) for name in QUANTITIES}

    parts = {"element": {}, "composition": {}, "compositions_left_out": 0, "size": {}, "file": {}}
    bootstrap = {"level": 0.95, "resamples": 1, "blocks": 1}
    head = {"format": FORMAT, "units": {}, "bootstrap": bootstrap, "parts": {"test": parts}}
    return head | {"splits": {"test": {variant: of_variant(size) for variant, size in sizes.items()}}}
