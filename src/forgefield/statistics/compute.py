"""One streaming pass over a training store and a model's predictions for it, by one process or shared by several."""

from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from ase.data import chemical_symbols

from forgefield.config.evaluation import StatisticsConfig
from forgefield.data.neighbors import neighbor_counts, neighbor_pairs
from forgefield.data.places import placed
from forgefield.data.processes import OneProcess, Processes, share
from forgefield.data.store import Store
from forgefield.errors import FrameError, UserError
from forgefield.models.inference import Engine, Predictor
from forgefield.models.potential import Potential, load_potential
from forgefield.statistics.choice import given_shifts
from forgefield.statistics.reference import iter_structures, reference_energy, reference_forces
from forgefield.statistics.shifts import composition
from forgefield.statistics.summarize import summarize

SCALARS = {
    "source_index": np.int64,
    "n_atoms": np.int64,
    "energy": np.float64,  # eV, NaN without a label
    "model_energy": np.float64,  # eV, 0 for a model from scratch
    "energy_weight": np.float64,
    "force_max": np.float64,  # largest norm of an atom's force, eV/Å, NaN without a label
    "force_squares": np.float64,  # sum over components, (eV/Å)^2
    "neighbors": np.int64,  # sum over atoms
    "most_neighbors": np.int64,
    "pairs": np.int64,
}
"""Columns of the table with one row per structure; ``counts`` (E,), atoms of each element, comes after them."""
LARGEST = 1e100  # eV; the squares of far larger numbers overflow
BLOCK = 1024  # structures that are predicted by themselves, so that it does not matter which process does


def compute_statistics(
    train: Path,
    model_dir: Path,
    config: StatisticsConfig,
    engine: Engine = "jax",
    processes: Processes | None = None,
) -> dict[str, Any]:
    """Statistics of a training store for one model, as finite JSON content with its units.

    Args:
        train: HDF5 store.
        model_dir: directory of the potential. One with ``pretrained`` False gets shifts fitted to the raw energies;
            any other, shifts corrected by a fit to the residual that its own predictions leave.
        config: the config's ``statistics`` section.
        engine: which computes the model's predictions.
        processes: those that share the work, all with the same files; the content, on all of them, does not depend on
            how many there are. One by default.

    Raises:
        UserError: an element of the data is unknown to the model or has no energy shift where the config gives them,
            the model's energy is not finite or beyond all measure, or no two atoms are near each other.
    """
    potential = load_potential(model_dir)
    with Store(train) as store:
        require_known_elements(store, potential, model_dir)
        elements = [z for z in potential.elements if z in store.elements]
        columns = [*SCALARS.items(), ("counts", np.int64, (len(elements),))]
        given = given_shifts(config, store, potential)
        table = _together(store, potential, elements, columns, engine, processes or OneProcess())
    if not table["pairs"].any():
        raise UserError(
            f"{train}: no two atoms are within the model's cutoff of {potential.cutoff:g} Å; "
            "look at units.length of the dataset, or choose a model with a larger cutoff"
        )
    return summarize(table, elements, potential, config, given)


def require_known_elements(store: Store, potential: Potential, model_dir: Path) -> None:
    """Raise a UserError that names the first frame with an element the potential does not know."""
    unknown = set(store.elements) - set(potential.elements)
    if not unknown:
        return
    structure = next(s for s in iter_structures(store) if unknown.intersection(s.numbers.tolist()))
    symbol = chemical_symbols[min(unknown.intersection(structure.numbers.tolist()))]
    known = ", ".join(chemical_symbols[z] for z in potential.elements)
    raise UserError(
        f"{store.places.words([structure.source_index])}: {symbol} is unknown to the model {model_dir} (it knows "
        f"{known}); choose a model that knows {symbol}, or leave such frames out"
    )


def _require_moderate(table: np.ndarray) -> None:
    """Squares of the model's energies must be numbers."""
    lost = np.flatnonzero(~(np.abs(table["model_energy"]) < LARGEST))  # a NaN is not below anything
    if len(lost):
        row = table[lost[0]]
        problem = f"the model's energy is {row['model_energy']:.3g} eV; choose another foundation model"
        raise FrameError(int(row["source_index"]), problem)


def _together(
    store: Store, potential: Potential, elements: list[int], columns: list[tuple], engine: Engine, processes: Processes
) -> np.ndarray:
    """The table of all structures, of which each process makes a share; a mistake is raised on all of them."""
    n = len(store)
    blocks = share(-(-n // BLOCK), processes)
    own, problem = None, None
    try:
        with placed(store.places):
            rows = range(min(n, blocks.start * BLOCK), min(n, blocks.stop * BLOCK))
            own = np.fromiter(_rows(store, rows, potential, elements, engine), dtype=columns)
            _require_moderate(own)
    except UserError as error:
        problem = str(error)
    everyone = processes.exchange((own, problem))
    if problem := next((problem for _, problem in everyone if problem), None):
        raise UserError(problem)
    return np.concatenate([table for table, _ in everyone])


def _rows(store: Store, rows: range, potential: Potential, elements: list[int], engine: Engine) -> Iterator[tuple]:
    energies = _model_energies(store, rows, potential, engine)
    for structure, model_energy in zip(iter_structures(store, rows), energies, strict=False):
        pairs = neighbor_pairs(structure, potential.cutoff)
        neighbors = neighbor_counts(len(structure), pairs)
        forces = reference_forces(structure)
        yield (
            structure.source_index,
            len(structure),
            reference_energy(structure),
            model_energy,
            structure.energy_weight,
            np.linalg.norm(forces, axis=1).max(),
            (forces**2).sum(),
            neighbors.sum(),
            neighbors.max(),
            len(pairs.receiver),
            composition(structure.numbers, elements),
        )


def _model_energies(store: Store, rows: range, potential: Potential, engine: Engine) -> Iterator[float]:
    if not potential.pretrained:
        yield from repeat(0.0)
    predict = Predictor(potential, wanted="energy", engine=engine)
    for start in range(rows.start, rows.stop, BLOCK):
        predict.forget_sizes()
        block = iter_structures(store, range(start, min(start + BLOCK, rows.stop)))
        yield from (prediction.energy for prediction in predict(block))
