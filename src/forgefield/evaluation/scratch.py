"""A run from scratch on the same data, which is shown beside a fine-tuned one."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from forgefield.errors import UserError
from forgefield.evaluation.errors import QuantityErrors
from forgefield.evaluation.metrics_file import Part, read_metrics, require_predictions
from forgefield.evaluation.predictions import read_rows


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
        UserError: it is not from scratch, has not been evaluated, or was on other data.
    """
    metrics = read_metrics(scratch)
    errors = metrics.splits[split].trained if split in metrics.splits else None
    if errors is None:
        raise UserError(f"{scratch}: holds no errors of a model from scratch on the {split} data; name another run")
    own = scratch / f"predictions_{split}.h5"
    require_predictions(own, metrics.predictions[split])
    if not _same_references(own, predictions):
        raise UserError(f"{own}: of other structures or labels than {predictions}; evaluate both runs on the same data")
    return Scratch(own, errors, metrics.parts[split].element)


def _same_references(*predictions: Path) -> bool:
    """Whether files are of the same structures with the same labels, wherever these were read from."""
    names = ["n_atoms", "species", "reference/energy", "reference/forces"]
    return all(
        one is not None and other is not None and all(np.array_equal(one[n], other[n], equal_nan=True) for n in names)
        for one, other in zip_longest(*(read_rows(path, names) for path in predictions))
    )
