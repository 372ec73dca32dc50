"""Errors as ``metrics.json`` holds them: the numbers of one quantity, and the quantities of one model."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from forgefield.config.base import NonNegative, NonNegativeInteger
from forgefield.config.contents import Finite, Record

Interval = Annotated[list[NonNegative], Field(min_length=2, max_length=2)]


class Errors(Record):
    """Errors of one quantity; null where there is nothing to average."""

    n: NonNegativeInteger
    """how many values were compared"""

    absent: NonNegativeInteger
    """how many values have no reference, and count in nothing else"""

    mae: NonNegative | None
    """the mean absolute error, or null"""

    rmse: NonNegative | None
    """the root mean square error, or null"""

    max: NonNegative | None
    """the largest absolute error, or null"""

    mae_interval: Interval | None
    """the bootstrap interval of `mae`, low and high; null with fewer than two blocks of structures"""

    rmse_interval: Interval | None
    """the bootstrap interval of `rmse`, low and high, or null"""

    r2: Finite | None
    """the coefficient of determination; null where the reference is constant, and for angles"""

    median: NonNegative | None
    """the median of the absolute errors, or null"""

    p95: NonNegative | None
    """the 95th percentile of the absolute errors, or null"""

    @model_validator(mode="after")
    def _compared(self) -> Self:
        if self.n and None in (self.mae, self.rmse, self.max):
            raise ValueError(f"{self.n} values compared, but mae, rmse or max is null")
        return self


class QuantityErrors(Record):
    """Errors of one model by quantity, over a whole split."""

    energy_per_atom: Errors
    """of total energies divided by the number of atoms"""

    energy: Errors
    """of total energies"""

    relative_energy: Errors
    """of total energies less the mean of their composition; absent where a composition has one labelled structure"""

    forces: Errors
    """of force components"""

    force_norms: Errors
    """of the magnitudes of the atoms' forces"""

    force_angles: Errors
    """the angle between both forces on each atom, which itself is the error; absent where one is below 0.001 eV/Å"""

    stress: Errors | None = None
    """of the nine stress components; only where the split has virials"""


class PartErrors(Record):
    """Errors of one model over a part of a split, by quantity."""

    energy_per_atom: Errors | None = None
    """as for the whole split; not by element"""

    energy: Errors | None = None
    """as for the whole split; not by element"""

    relative_energy: Errors | None = None
    """as for the whole split; not by element"""

    forces: Errors
    """as for the whole split"""

    force_norms: Errors
    """as for the whole split"""

    force_angles: Errors
    """as for the whole split"""

    stress: Errors | None = None
    """as for the whole split; not by element"""
