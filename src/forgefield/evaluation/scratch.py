"""A run from scratch on the same data, which is shown beside a fine-tuned one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from forgefield.errors import UserError
from forgefield.evaluation.errors import QuantityErrors
from forgefield.evaluation.metrics_file import Part, read_metrics, require_predictions
from forgefield.evaluation.predictions import read_rows, read_sources


@dataclass(frozen=True)
class Scratch:
    """What it found of one split.

    Attributes:
        predictions: its predictions file.
        errors: over the whole split.
        elements: by element.
    """

    predictions: Path
    errors: QuantityErrors
    elements: Mapping[str, Part]


def read_scratch(scratch: Path, split: str, predictions: Path) -> Scratch:
    """The errors of a run from scratch, of the structures that another run's predictions are of.

    Raises:
        UserError: it is not from scratch, has not been evaluated, or was on other structures.
    """
    metrics = read_metrics(scratch)
    errors = metrics.splits[split].trained if split in metrics.splits else None
    if errors is None:
        raise UserError(f"{scratch}: holds no errors of a model from scratch on the {split} data; name another run")
    own = scratch / f"predictions_{split}.h5"
    require_predictions(own, metrics.predictions[split])
    if _structures(own) != _structures(predictions):
        raise UserError(f"{own}: of other structures than {predictions}; evaluate both runs on the same data")
    return Scratch(own, errors, metrics.parts[split].element)


def _structures(predictions: Path) -> list:
    """Which structures a file is of."""
    names = ["n_atoms", "source_index"]
    columns = [np.concatenate([rows[name] for rows in read_rows(predictions, names)] or [[]]) for name in names]
    return [read_sources(predictions), *(column.tolist() for column in columns)]
