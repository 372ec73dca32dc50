"""Metrics and per-structure predictions of one run, each structure counted exactly once, in double precision.

docs/metrics.md describes ``metrics.json``, and :mod:`~forgefield.evaluation.predictions` the predictions file. The
variants of a fine-tuned run are ``foundation`` (as it came), ``refitted`` (the same with energy shifts fitted to the
training set) and ``finetuned``; a run from scratch has ``trained`` only.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from forgefield.config import RunConfig
from forgefield.data.batching import shift_energy
from forgefield.data.places import placed
from forgefield.data.prefetch import Prefetch
from forgefield.data.processes import OneProcess, Processes
from forgefield.data.store import Store
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.evaluation import bootstrap
from forgefield.evaluation.columns import prediction_columns, reference_columns, require_moderate_errors
from forgefield.evaluation.metrics import compute_metrics
from forgefield.evaluation.metrics_file import FORMAT
from forgefield.evaluation.models import Models
from forgefield.evaluation.parts import batches_of, grouped, write_together
from forgefield.evaluation.predictions import create_predictions, write_rows
from forgefield.evaluation.values import METRIC_UNITS
from forgefield.files import sha256_of, write_json
from forgefield.models.digest import model_sha256
from forgefield.models.inference import fastest_engine
from forgefield.models.potential import Potential, load_potential
from forgefield.statistics import apply_statistics
from forgefield.statistics.compute import require_known_elements


def evaluate_run(
    config: RunConfig, data: Path, foundation: Path, statistics: Path, run: Path, processes: Processes | None = None
) -> dict[str, Any]:
    """Evaluate a run on the splits that its config names and write its metrics and predictions files.

    Several processes, and the devices of each, share the structures; process 0 writes.

    Args:
        config: the run's config.
        data: directory with one HDF5 store per split.
        foundation: directory of the potential that training started from.
        statistics: the statistics file of the training set for that potential.
        run: the run's directory; ``model`` in it is the trained potential.
        processes: those that evaluate together, all with the same files; one by default.

    Returns:
        The content of ``metrics.json``.

    Raises:
        UserError: a structure has an element that the model does not know, or a prediction is not finite
            or beyond all measure.
    """
    processes = processes or OneProcess()
    potentials = _potentials(foundation, statistics, run)
    sources = {split: data / f"{split}.h5" for split in config.evaluation.splits}
    wanted = "virial" if any(_has_virial(source) for source in sources.values()) else "forces"
    trained = model_sha256(run / "model")
    models = Models(
        # the refitted model differs from the foundation by energy shifts alone, so it is not run a second time
        {variant: potential for variant, potential in potentials.items() if variant != "refitted"},
        batch=config.training.eval_batch,
        wanted=wanted,
        engine=fastest_engine(config.backend),
        kernels=config.training.kernels,
        devices=config.local_devices,
    )
    splits, parts, predictions = {}, {}, {}
    for split, source in sources.items():
        with Store(source) as store:
            require_known_elements(store, next(iter(potentials.values())), foundation)
            path = _write_predictions(split, store, potentials, models, trained, run, processes)
            if processes.index == 0:
                splits[split], parts[split] = compute_metrics(path, list(potentials), store.has_virial)
                predictions[split] = sha256_of(path)
    metrics = {
        "format": FORMAT,
        "model": trained,
        "predictions": predictions,
        "units": METRIC_UNITS,
        "bootstrap": {"level": bootstrap.LEVEL, "resamples": bootstrap.RESAMPLES, "blocks": bootstrap.BLOCKS},
        "splits": splits,
        "parts": parts,
    }
    if processes.index == 0:
        write_json(run / "metrics.json", metrics)
    return processes.broadcast(metrics)


def require_trained(run: Path) -> None:
    """Raise a UserError where the run has no trained model."""
    if not (run / "model").exists():
        raise UserError(f"{run / 'model'}: not trained yet; start `forgefield train` with these settings first")


def _potentials(foundation: Path, statistics: Path, run: Path) -> dict[str, Potential]:
    require_trained(run)
    start = load_potential(foundation)
    trained = load_potential(run / "model")
    if not start.pretrained:
        return {"trained": trained}
    return {"foundation": start, "refitted": apply_statistics(start, statistics), "finetuned": trained}


def _has_virial(source: Path) -> bool:
    with Store(source) as store:
        return store.has_virial


def _write_predictions(
    split: str,
    store: Store,
    potentials: Mapping[str, Potential],
    models: Models,
    trained: str,
    run: Path,
    processes: Processes,
) -> Path:
    def layout(file: h5py.File, n: int) -> None:
        sizes = {"n": n, "max_atoms": store.max_atoms, "stress": store.has_virial, "model": trained}
        create_predictions(file, split, list(potentials), **sizes, sources=store.places.files)

    def write(file: h5py.File, batches: Sequence[range]) -> None:
        start = 0
        with Prefetch(_batches(store, models, batches)) as ahead:
            for structures, prepared in ahead:
                columns = _columns(store, potentials, models, structures, prepared)
                write_rows(file, start, columns)
                start += len(structures)

    path = run / f"predictions_{split}.h5"
    devices = sum(processes.exchange(models.devices))
    if processes.index == 0:
        shared = f"{devices} device{'s' * (devices > 1)} of {processes.count} process{'es' * (processes.count > 1)}"
        print(f"{split}: {len(store)} structures on {shared}", file=sys.stderr, flush=True)
    write_together(path, batches_of(len(store), models.batch), layout, write, processes)
    return path


def _batches(store: Store, models: Models, batches: Sequence[range]) -> Iterator[tuple[list[Structure], Any]]:
    """Structures, a batch of them for each device at a time, and what the models need to compute them."""
    for some in grouped(batches, models.devices):
        by_batch = [store.read(store.in_source_order[rows.start : rows.stop]) for rows in some]
        with placed(store.places):
            prepared = models.prepared(by_batch)
        yield [structure for structures in by_batch for structure in structures], prepared


def _columns(
    store: Store,
    potentials: Mapping[str, Potential],
    models: Models,
    structures: Sequence[Structure],
    prepared: Any,
) -> dict[str, np.ndarray]:
    """Reference and predictions of structures, as columns of the predictions file."""
    columns = reference_columns(structures, store.has_virial)
    for variant in models.variants:
        with placed(store.places, f"{variant} model"):
            predictions = models.predict(variant, prepared)
        columns |= prediction_columns(variant, predictions, store.has_virial)
    if "refitted" in potentials:
        columns |= _refitted_columns(structures, columns, potentials["refitted"], potentials["foundation"])
    for variant in potentials:
        with placed(store.places, f"{variant} model"):
            require_moderate_errors(columns, variant)
    return columns


def _refitted_columns(
    structures: Sequence[Structure], columns: dict[str, np.ndarray], refitted: Potential, foundation: Potential
) -> dict[str, np.ndarray]:
    """The foundation's columns with other energy shifts."""
    corrections = {z: refitted.energy_shifts[z] - foundation.energy_shifts[z] for z in foundation.elements}
    changed = {k.replace("foundation/", "refitted/"): v for k, v in columns.items() if k.startswith("foundation/")}
    changed["refitted/energy"] = changed["refitted/energy"] + [shift_energy(s, corrections) for s in structures]
    return changed
