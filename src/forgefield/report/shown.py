"""Which points of which runs a page shows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forgefield.data.places import Places
from forgefield.evaluation.metrics_file import require_predictions
from forgefield.evaluation.parity_values import QUANTITIES, ParityValues, Quantity
from forgefield.evaluation.predictions import read_sources
from forgefield.report.collect import Run
from forgefield.report.faults import Faults
from forgefield.report.points import Points, choose_points
from forgefield.report.structures import Structures, read_structures

COLUMNS = {"structure": np.uint32, "place": np.uint32, "element": np.uint8}


@dataclass(frozen=True)
class Shown:
    """The points of one run and quantity.

    Attributes:
        run: the run.
        quantity: the quantity.
        label: of the axes.
        variants: the models that there are predictions of.
        points: the points, whose ``structure`` is the place in the columns of ``structures``.
        structures: theirs.
    """

    run: Run
    quantity: Quantity
    label: str
    variants: list[str]
    points: Points
    structures: Structures

    @property
    def n(self) -> int:
        """How many points there are."""
        return len(self.points.columns["reference"])

    def columns(self) -> dict[str, np.ndarray]:
        """The points in as few bytes as a plot needs."""
        return {name: values.astype(COLUMNS.get(name, np.float32)) for name, values in self.points.columns.items()}

    def count(self) -> str:
        """How many points of how many there are, in words."""
        part = "all" if self.n == self.points.total else f"{self.n:,} of the"
        return f"{self.run.name}: {part} {self.points.total:,} values of the {self.run.split} set"


def choose_shown(runs: Sequence[Run], most: int, faults: Faults) -> list[Shown]:
    """At most ``most`` points of all runs: as many of each, and what one quantity does not need, the next may have.

    A run whose predictions are damaged has none, where ``faults`` tolerate it.
    """
    shown = []
    for run in runs:
        with faults.leaving_out(f"predictions of {run.name}"):
            shown += _of_run(run, most // len(runs))
    return shown


def _of_run(run: Run, most: int) -> list[Shown]:
    require_predictions(run.predictions, run.metrics.predictions[run.split])
    # as the predictions have them: the converted data may be others by now
    places, found = Places(read_sources(run.predictions)), []
    quantities = sorted(_labelled(run), key=lambda quantity: quantity is QUANTITIES["forces"])  # which are most
    for left, quantity in zip(range(len(quantities), 0, -1), quantities, strict=True):
        # other energy shifts change energies only
        variants = [v for v in run.variants if v != "refitted" or quantity is QUANTITIES["energy"]]
        values = ParityValues(run.predictions, quantity)
        points = choose_points(run.predictions, quantity, variants, most // left, values.baseline)
        most -= len(points.columns["reference"])
        rows, points.columns["structure"] = np.unique(points.columns["structure"], return_inverse=True)
        found.append(
            Shown(run, quantity, values.label, variants, points, read_structures(run.predictions, places, rows))
        )
    return found


def _labelled(run: Run) -> list[Quantity]:
    """The quantities of which there are references."""
    _, metrics = next(run.splits[run.split].variants())
    errors = {quantity: getattr(metrics, quantity.name) for quantity in QUANTITIES.values()}
    return [quantity for quantity, of_quantity in errors.items() if of_quantity and of_quantity.n]
