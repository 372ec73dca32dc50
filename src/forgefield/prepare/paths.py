"""Where a run's inputs and results are."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunPaths:
    """Where the inputs of a run are, and the run itself.

    Attributes:
        data: directory of train.h5, valid.h5 and test.h5.
        model: directory of the potential that training starts from.
        statistics: the file of the statistics.
        output: the run's directory.
        given: which of the first three the user has made, so that they are taken as they are.
    """

    data: Path
    model: Path
    statistics: Path
    output: Path
    given: frozenset[str] = frozenset()
