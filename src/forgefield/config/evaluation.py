"""``statistics``, ``evaluation`` and ``plots``: what is reported before and after training."""

from typing import Annotated, Any, Literal

from ase.data import atomic_numbers
from pydantic import BeforeValidator, Field, WithJsonSchema

from forgefield.config.base import NonNegative, Positive, PositiveInteger, Section, number

SHIFTS = ("auto", "fit", "isolated_atoms")


def _shifts(value: Any) -> Any:
    """A word, or eV by chemical symbol."""
    if isinstance(value, str) and value in SHIFTS:
        return value
    if not isinstance(value, dict) or not value:
        raise ValueError(f"expected {', '.join(SHIFTS)} or energies in eV such as {{H: -13.6}}, found {value!r}")
    for symbol, energy in value.items():
        if atomic_numbers.get(symbol, 0) < 1:
            raise ValueError(f"{symbol!r} is no chemical symbol (YAML takes No for false; write 'No')")
        if not isinstance(number(energy), int | float) or not abs(number(energy)) < float("inf"):
            raise ValueError(f"{symbol}: expected an energy in eV, found {energy!r}")
    return {symbol: float(number(energy)) for symbol, energy in value.items()}


EnergyShifts = Annotated[
    str | dict[str, float],
    BeforeValidator(_shifts),
    WithJsonSchema(
        {"anyOf": [{"enum": list(SHIFTS)}, {"type": "object", "additionalProperties": {"type": ["number", "string"]}}]}
    ),
]


class StatisticsConfig(Section):
    """Energy shifts and a description of the training set, once for each dataset and model."""

    energy_shifts: EnergyShifts = "auto"
    """Energy of each element that is added to what the model computes. `fit`: least squares of what a pretrained
    model's energies leave, or, for a model from scratch, of the energies; `isolated_atoms`: the energies of single
    atoms in the source; or energies in eV by element, such as `{H: -13.6, O: -2043.2}`. `auto`: `isolated_atoms` for a
    model from scratch whose source has one of each element, else `fit`."""

    ridge: NonNegative = 0.0
    """Ridge of the fit: this number times the squares of the fitted energies (eV) is added to the mean square error per
    atom. 0 is plain least squares, with the least correction where compositions cannot tell elements apart."""

    outlier_threshold: Positive = 6.0
    """A structure is listed as an outlier if its largest force or its energy residual lies beyond the median by more
    than this many robust standard deviations."""


class EvaluationConfig(Section):
    """Metrics and predictions of the model as it came and of the trained one."""

    splits: Annotated[list[Literal["valid", "test", "train"]], Field(min_length=1)] = Field(default=["valid", "test"])
    """Parts of the dataset to evaluate on."""


class PlotsConfig(Section):
    """Parity plots and the learning curve."""

    dpi: PositiveInteger = 200
    """Resolution of the png files, dots per inch."""
