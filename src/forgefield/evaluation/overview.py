"""What the data are, split by split: sizes, elements, energies and forces."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ase.data import chemical_symbols
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forgefield.data.store import Store
from forgefield.errors import UserError
from forgefield.evaluation.baseline import composition_fit
from forgefield.evaluation.compositions import Compositions
from forgefield.evaluation.predictions import real_atoms
from forgefield.evaluation.style import BLUE, GREEN, ORANGE, WIDE, plain_logarithm
from forgefield.units import Units

# told apart also where they are on top of one another
LOOKS: dict[str, dict[str, Any]] = {
    "train": {"color": BLUE, "fill": True, "alpha": 0.35},
    "valid": {"color": ORANGE},
    "test": {"color": GREEN, "linestyle": (0, (3, 1.5))},
}
ROWS, BINS, MOST_ELEMENTS = 512, 40, 14
# of force magnitudes, eV/Å
FORCES = np.geomspace(1e-3, 1e3, 61)


@dataclass
class Overview:
    """One split.

    Attributes:
        n_atoms: (N,).
        composition: (N,) of each, counted over all splits.
        energies: (N,) eV, NaN where absent.
        forces: atoms by the magnitude of their force, in the bins of ``FORCES``.
    """

    n_atoms: np.ndarray
    composition: np.ndarray
    energies: np.ndarray
    forces: np.ndarray


def overview_figure(data: Path) -> Figure:
    """Four panels from the stores of a directory.

    Raises:
        UserError: there are none, or they are damaged.
    """
    known = Compositions()
    splits = {split: read_overview(data / f"{split}.h5", known) for split in LOOKS if (data / f"{split}.h5").exists()}
    splits = {split: found for split, found in splits.items() if len(found.n_atoms)}
    if not splits:
        raise UserError(
            f"--data {data}: no structures in {', '.join(f'{split}.h5' for split in LOOKS)}; give the directory of a"
            " converted dataset"
        )
    figure = Figure(figsize=(WIDE, 4.2), layout="constrained")
    (sizes, elements), (energies, forces) = figure.subplots(2, 2)
    _draw_sizes(sizes, splits)
    _draw_elements(elements, splits, known.counts)
    _draw_energies(energies, splits, known.counts)
    _draw_forces(forces, splits)
    handles, labels = sizes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(splits), handlelength=1.2)
    return figure


def read_overview(path: Path, known: Compositions) -> Overview:
    """Read a store in chunks of rows; its compositions become known."""
    with Store(path) as store:
        chunks = list(_chunks(store, known))
    none = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(len(FORCES) - 1))]
    n_atoms, composition, energies, forces = zip(*none, *chunks, strict=True)
    return Overview(np.concatenate(n_atoms), np.concatenate(composition), np.concatenate(energies), sum(forces))


def _chunks(store: Store, known: Compositions) -> Iterator[tuple[np.ndarray, ...]]:
    factors = store.units.factors(Units())
    for start in range(0, len(store), ROWS):
        rows = store.read_columns(slice(start, min(start + ROWS, len(store))))
        composition = known.number(rows["species"])
        energies = np.where(rows["U_weight"] > 0, rows["U"] * factors.energy, np.nan)
        labelled = real_atoms(rows["n_atoms"], rows["F"].shape[1]) & (rows["F_weight"] > 0)[:, None]
        norms = np.linalg.norm(rows["F"][labelled] * factors.forces, axis=1)
        yield rows["n_atoms"], composition, energies, np.histogram(np.clip(norms, FORCES[0], FORCES[-1]), FORCES)[0]


def _draw_sizes(axes: Axes, splits: Mapping[str, Overview]) -> None:
    largest = max(split.n_atoms.max() for split in splits.values())
    smallest = min(split.n_atoms.min() for split in splits.values())
    step = max(1, -(-(largest - smallest + 1) // BINS))
    edges = np.arange(smallest, largest + step + 1, step) - 0.5
    for name, split in splits.items():
        counts = np.histogram(split.n_atoms, edges)[0] / len(split.n_atoms)
        label = f"{name} ({len(split.n_atoms):,})"
        axes.stairs(100 * counts, edges, **LOOKS[name], label=label)
    axes.set(xlabel="atoms", ylabel="structures (%)", ylim=(0, None), xlim=(edges[0] - step, edges[-1] + step))
    axes.locator_params(axis="x", integer=True, nbins=6)


def _draw_elements(axes: Axes, splits: Mapping[str, Overview], counts: np.ndarray) -> None:
    atoms = {name: np.bincount(s.composition, minlength=len(counts)) @ counts for name, s in splits.items()}
    total = sum(atoms.values())
    shown = np.argsort(-total, kind="stable")[: min(np.count_nonzero(total), MOST_ELEMENTS)]
    width = 0.8 / len(splits)
    for i, (name, of_split) in enumerate(atoms.items()):
        share = 100 * of_split[shown] / of_split.sum()
        place = np.arange(len(shown)) + (i - (len(splits) - 1) / 2) * width
        axes.bar(place, share, width, color=LOOKS[name]["color"], alpha=LOOKS[name].get("alpha"))
    axes.set_xticks(np.arange(len(shown)), [chemical_symbols[z] for z in shown])
    axes.set(xlabel="element", ylabel="atoms (%)")


def _draw_energies(axes: Axes, splits: Mapping[str, Overview], counts: np.ndarray) -> None:
    """Less the fit of the first split to compositions, by which a model from scratch begins."""
    first = next(iter(splits.values()))
    baseline = counts @ composition_fit(first.energies, first.composition, counts)
    values = {name: (s.energies - baseline[s.composition]) / s.n_atoms for name, s in splits.items()}
    values = {name: 1000 * v[~np.isnan(v)] for name, v in values.items()}
    if not any(v.size for v in values.values()):
        axes.text(0.5, 0.5, "no energies", transform=axes.transAxes, ha="center")
        return
    bins = min(BINS, 2 * int(min(v.size for v in values.values()) ** 0.5) + 3)
    edges = np.histogram_bin_edges(np.concatenate([*values.values()]), bins)
    for name, of_split in values.items():
        axes.stairs(100 * np.histogram(of_split, edges)[0] / max(of_split.size, 1), edges, **LOOKS[name])
    what = "composition fit" if len(counts) > 1 else "training mean"
    axes.set(xlabel=f"energy − {what}\n(meV/atom)", ylabel="structures (%)", ylim=(0, None))


def _draw_forces(axes: Axes, splits: Mapping[str, Overview]) -> None:
    filled = np.flatnonzero(sum(split.forces for split in splits.values()))
    for name, split in splits.items():
        axes.stairs(100 * split.forces / max(split.forces.sum(), 1), FORCES, **LOOKS[name])
    if len(filled):
        axes.set_xlim(FORCES[filled[0]] / 1.2, FORCES[filled[-1] + 1] * 1.2)
    axes.set(xscale="log", xlabel="magnitude of the force\n(eV/Å)", ylabel="atoms (%)", ylim=(0, None))
    plain_logarithm(axes.xaxis)
