"""Reading a run's ``metrics.json``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from forgefield.config.base import NonNegative, NonNegativeInteger
from forgefield.config.contents import Finite, Record, read_content

AGAIN = "evaluate the run again with `forgefield evaluate`"


class Errors(Record):
    """Errors of one quantity; null where there is nothing to average."""

    n: NonNegativeInteger
    """how many values were compared"""

    mae: NonNegative | None
    """the mean absolute error, or null"""

    rmse: NonNegative | None
    """the root mean square error, or null"""

    r2: Finite | None
    """the coefficient of determination, or null"""

    @model_validator(mode="after")
    def _compared(self) -> Self:
        if self.n and None in (self.mae, self.rmse):
            raise ValueError(f"{self.n} values compared, but mae or rmse is null")
        return self


class QuantityErrors(Record):
    """Errors of one model by quantity."""

    energy_per_atom: Errors
    """errors of the energies, eV/atom"""

    forces: Errors
    """errors of the force components, eV/Å"""

    stress: Errors | None = None
    """errors of the stress components, eV/Å³; only where the data have virials"""


class SplitErrors(Record):
    """Errors of one split by variant of the model: either ``trained``, or all others."""

    foundation: QuantityErrors | None = None
    """the model that training started from"""

    refitted: QuantityErrors | None = None
    """the same with energy shifts fitted to the training set"""

    finetuned: QuantityErrors | None = None
    """the trained model"""

    trained: QuantityErrors | None = None
    """the model trained from scratch"""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (found := set(dict(self.variants()))) not in ({"trained"}, {"foundation", "refitted", "finetuned"}):
            names = ", ".join(sorted(found)) or "no variant"
            raise ValueError(f"expected foundation, refitted and finetuned, or trained, found {names}")
        return self

    def variants(self) -> Iterator[tuple[str, QuantityErrors]]:
        """Names and errors of the variants that there are."""
        return ((name, errors) for name, errors in self if errors is not None)


class Metrics(Record):
    """What tables and pictures take from ``metrics.json``."""

    splits: Annotated[dict[str, SplitErrors], Field(min_length=1)]
    """errors by split"""


def read_splits(run: Path) -> dict[str, SplitErrors]:
    """The errors of a run by split.

    Raises:
        UserError: the file is damaged; the message names the key.
    """
    return read_content(run / "metrics.json", Metrics, AGAIN).splits
