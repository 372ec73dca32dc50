"""What a run's ``metrics.json`` holds; docs/metrics.md and its JSON schema are written from these models."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from forgefield.config.base import NonNegativeInteger, PositiveInteger
from forgefield.config.contents import Record, read_content
from forgefield.errors import UserError
from forgefield.evaluation.errors import PartErrors, QuantityErrors
from forgefield.files import sha256_of
from forgefield.models.digest import model_sha256

FORMAT = 3
VARIANTS = {
    "foundation": "zero-shot",
    "refitted": "zero-shot, refitted",
    "finetuned": "fine-tuned",
    "trained": "from scratch",
}
"""How tables and pictures call each variant of the model."""
SHOWN = ("test", "valid", "train")
AGAIN = "evaluate the run again with `forgefield evaluate`"


class Variants(Record):
    """One entry for each model that was evaluated: either ``trained``, or all others."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (found := set(dict(self.variants()))) not in ({"trained"}, {"foundation", "refitted", "finetuned"}):
            names = ", ".join(sorted(found)) or "no variant"
            raise ValueError(f"expected foundation, refitted and finetuned, or trained, found {names}")
        return self

    def variants(self) -> Iterator[tuple[str, QuantityErrors | PartErrors]]:
        """Names and errors of the variants that there are."""
        return ((name, errors) for name, errors in self if errors is not None)


class SplitErrors(Variants):
    """Errors over a whole split by model: either `trained`, or all others."""

    foundation: QuantityErrors | None = None
    """the model that training started from"""

    refitted: QuantityErrors | None = None
    """the same with energy shifts fitted to the training set"""

    finetuned: QuantityErrors | None = None
    """the trained model"""

    trained: QuantityErrors | None = None
    """the model trained from scratch"""


class PartVariants(Variants):
    """Errors over a part of a split by model: either `trained`, or all others."""

    foundation: PartErrors | None = None
    """the model that training started from"""

    refitted: PartErrors | None = None
    """the same with energy shifts fitted to the training set"""

    finetuned: PartErrors | None = None
    """the trained model"""

    trained: PartErrors | None = None
    """the model trained from scratch"""


class Part(Record):
    """A part of a split."""

    structures: PositiveInteger
    """structures in it; for an element, those that have it"""

    atoms: PositiveInteger
    """atoms of these structures; for an element, atoms of it"""

    errors: PartVariants
    """by model"""


class Parts(Record):
    """The parts of one split, in four ways; the largest part first, sizes in ascending order, files as listed."""

    element: dict[str, Part]
    """by chemical symbol"""

    composition: dict[str, Part]
    """by chemical formula, as `C2H6O`; the 50 with most structures"""

    compositions_left_out: NonNegativeInteger
    """how many compositions are not listed"""

    size: dict[str, Part]
    """by number of atoms, as `9`; ranges as `8-12` where there are more than 20 sizes"""

    file: dict[str, Part]
    """by source file, the 50 with most structures; empty where the structures are from one file"""


class Bootstrap(Record):
    """How the intervals were found: blocks of structures drawn with replacement, with the same seed always."""

    level: float
    """share of the resamples that lie in the interval"""

    resamples: PositiveInteger
    """how often blocks were drawn"""

    blocks: PositiveInteger
    """the largest number of blocks; with as few structures each is its own block, else consecutive ones share one"""


class Metrics(Record):
    """The file."""

    format: Literal[FORMAT]  # type: ignore[valid-type]
    """the version of this layout"""

    model: str
    """the sha256 of the trained model: of its description without `source` and `created_by`, and of its weights"""

    predictions: dict[str, str]
    """the sha256 of the predictions file that the numbers are computed from, by split"""

    units: dict[str, str]
    """unit of mae, rmse, max, median, p95 and intervals by quantity; r2 has none"""

    bootstrap: Bootstrap
    """how intervals were found"""

    splits: Annotated[dict[str, SplitErrors], Field(min_length=1)]
    """errors by split"""

    parts: dict[str, Parts]
    """errors of parts of the data, by split"""


def read_metrics(run: Path) -> Metrics:
    """The content of a run's ``metrics.json``.

    Raises:
        UserError: the file is damaged, or of another version, and the message names the key; or it is not of the model
            that is there.
    """
    path, model = run / "metrics.json", run / "model"
    metrics = read_content(path, Metrics, AGAIN)
    if model.exists() and model_sha256(model) != metrics.model:
        raise UserError(f"{path}: of another model than {model}, by its sha256; {AGAIN}")
    return metrics


def require_predictions(path: Path, sha256: str) -> None:
    """What is drawn must be what ``metrics.json`` counts; that there is a file at all is for its reader to ask.

    Raises:
        UserError: the predictions file is another one, or no longer as it was.
    """
    if path.exists() and sha256_of(path) != sha256:
        raise UserError(f"{path}: not the file that metrics.json is of, by its sha256: damaged or changed; {AGAIN}")


def shown_split(splits: Collection[str]) -> str:
    """The split that pictures show: test where there is one."""
    return next(split for split in SHOWN if split in splits)


def read_splits(run: Path) -> dict[str, SplitErrors]:
    """The errors of a run by split; see :func:`read_metrics`."""
    return read_metrics(run).splits
