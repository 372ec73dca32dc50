"""Metrics and per-structure predictions of one run, each structure counted exactly once, in double precision.

``metrics.json`` holds ``units`` by quantity and, as ``splits[split][variant][quantity]``, the numbers n, absent, mae,
rmse, r2 and max. The variants of a fine-tuned run are ``foundation`` (as it came), ``refitted`` (the same with energy
shifts fitted to the training set) and ``finetuned``; a run from scratch has ``trained`` only.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from forgefield.config import RunConfig
from forgefield.data.batching import shift_energy
from forgefield.data.places import placed
from forgefield.data.processes import OneProcess, Processes
from forgefield.data.store import Store
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.evaluation.columns import prediction_columns, reference_columns, require_moderate_errors
from forgefield.evaluation.metrics import METRIC_UNITS, ErrorSums
from forgefield.evaluation.parts import write_together
from forgefield.evaluation.predictions import create_predictions, real_atoms, write_rows
from forgefield.files import write_json
from forgefield.models.inference import Predictor, fastest_engine
from forgefield.models.potential import Potential, load_potential
from forgefield.statistics import apply_statistics
from forgefield.statistics.compute import require_known_elements
from forgefield.statistics.reference import iter_structures

CHUNK = 256
Sums = dict[str, dict[str, ErrorSums]]  # by variant and quantity


def evaluate_run(
    config: RunConfig, data: Path, foundation: Path, statistics: Path, run: Path, processes: Processes | None = None
) -> dict[str, Any]:
    """Evaluate a run on the splits that its config names and write its metrics and predictions files.

    Of several processes each evaluates one contiguous part of the structures, and process 0 writes.

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
    engine = fastest_engine(config.backend)
    batch = -(-config.training.eval_batch // processes.count)
    # the refitted model differs from the foundation by energy shifts alone, so it is not run a second time
    predictors = {
        variant: Predictor(potential, batch=batch, wanted=wanted, engine=engine, kernels=config.training.kernels)
        for variant, potential in potentials.items()
        if variant != "refitted"
    }
    splits = {}
    for split, source in sources.items():
        with Store(source) as store:
            require_known_elements(store, next(iter(potentials.values())), foundation)
            splits[split] = _evaluate_split(split, store, potentials, predictors, run, processes)
    metrics = {"units": METRIC_UNITS, "splits": splits}
    if processes.index == 0:
        write_json(run / "metrics.json", metrics)
    return metrics


def _potentials(foundation: Path, statistics: Path, run: Path) -> dict[str, Potential]:
    start = load_potential(foundation)
    if not (run / "model").exists():
        raise UserError(f"{run / 'model'}: not trained yet; start `forgefield train` with these settings first")
    trained = load_potential(run / "model")
    if not start.pretrained:
        return {"trained": trained}
    return {"foundation": start, "refitted": apply_statistics(start, statistics), "finetuned": trained}


def _has_virial(source: Path) -> bool:
    with Store(source) as store:
        return store.has_virial


def _evaluate_split(
    split: str,
    store: Store,
    potentials: Mapping[str, Potential],
    predictors: Mapping[str, Predictor],
    run: Path,
    processes: Processes,
) -> dict[str, dict[str, Any]]:
    """Write the predictions of one split and return its metrics by variant and quantity."""

    def layout(file: h5py.File, n: int) -> None:
        create_predictions(file, split, list(potentials), n=n, max_atoms=store.max_atoms, stress=store.has_virial)

    def write(file: h5py.File, rows: range) -> Sums:
        return _evaluate_rows(file, rows, store, potentials, predictors)

    path = run / f"predictions_{split}.h5"
    sums, *others = write_together(path, len(store), layout, write, processes)
    for variant, quantity in product(sums, next(iter(sums.values()))):
        for other in others:
            sums[variant][quantity].join(other[variant][quantity])
    return {variant: {quantity: s.result() for quantity, s in by.items()} for variant, by in sums.items()}


def _evaluate_rows(
    file: h5py.File,
    rows: range,
    store: Store,
    potentials: Mapping[str, Potential],
    predictors: Mapping[str, Predictor],
) -> Sums:
    """Write the predictions of some rows of a store, from the first row of the file on, and sum up their errors."""
    quantities = ("energy_per_atom", "energy", "forces") + (("stress",) if store.has_virial else ())
    sums = {variant: {quantity: ErrorSums() for quantity in quantities} for variant in potentials}
    start = 0
    for columns in _columns(store, rows, potentials, predictors):
        write_rows(file, start, columns)
        start += len(columns["n_atoms"])
        for variant in potentials:
            with placed(store.places, f"{variant} model"):
                require_moderate_errors(columns, variant)
            _add(sums[variant], columns, variant)
    return sums


def _columns(
    store: Store, rows: range, potentials: Mapping[str, Potential], predictors: Mapping[str, Predictor]
) -> Iterator[dict[str, np.ndarray]]:
    """Reference and predictions in chunks of structures, as columns of the predictions file."""
    structures = iter_structures(store, rows)
    streams = {variant: predict(iter_structures(store, rows)) for variant, predict in predictors.items()}
    while chunk := list(islice(structures, CHUNK)):
        columns = reference_columns(chunk, store.has_virial)
        for variant, stream in streams.items():
            with placed(store.places, f"{variant} model"):
                predictions = list(islice(stream, len(chunk)))
            columns |= prediction_columns(variant, predictions, store.has_virial)
        if "refitted" in potentials:
            columns |= _refitted_columns(chunk, columns, potentials["refitted"], potentials["foundation"])
        yield columns


def _refitted_columns(
    structures: Sequence[Structure], columns: dict[str, np.ndarray], refitted: Potential, foundation: Potential
) -> dict[str, np.ndarray]:
    """The foundation's columns with other energy shifts."""
    corrections = {z: refitted.energy_shifts[z] - foundation.energy_shifts[z] for z in foundation.elements}
    changed = {k.replace("foundation/", "refitted/"): v for k, v in columns.items() if k.startswith("foundation/")}
    changed["refitted/energy"] = changed["refitted/energy"] + [shift_energy(s, corrections) for s in structures]
    return changed


def _add(sums: Mapping[str, ErrorSums], columns: Mapping[str, np.ndarray], variant: str) -> None:
    n_atoms = columns["n_atoms"]
    reference, predicted = columns["reference/energy"], columns[f"{variant}/energy"]
    sums["energy"].add(reference, predicted)
    sums["energy_per_atom"].add(reference / n_atoms, predicted / n_atoms)
    atoms = real_atoms(n_atoms, columns["reference/forces"].shape[1])
    sums["forces"].add(columns["reference/forces"][atoms], columns[f"{variant}/forces"][atoms])
    if "stress" in sums:
        sums["stress"].add(columns["reference/stress"], columns[f"{variant}/stress"])
