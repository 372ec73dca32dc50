"""``statistics``, ``evaluation`` and ``plots``: what is reported before and after training."""

from typing import Annotated, Literal

from pydantic import Field

from forgefield.config.base import Positive, PositiveInteger, Section


class StatisticsConfig(Section):
    """Energy shifts and a description of the training set, once for each dataset and model."""

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
