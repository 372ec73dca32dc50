"""All pictures of one run, drawn from its files alone, and from its data."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from forgefield.config.evaluation import PlotsConfig
from forgefield.errors import UserError
from forgefield.evaluation.error_plots import element_figure, magnitude_figure
from forgefield.evaluation.errors import Errors
from forgefield.evaluation.learning_curve import learning_curve_figure
from forgefield.evaluation.metrics_file import Metrics, read_metrics, require_predictions, shown_split
from forgefield.evaluation.overview import overview_figure
from forgefield.evaluation.parity import parity_figure
from forgefield.evaluation.parity_values import QUANTITIES
from forgefield.evaluation.scratch import Scratch, read_scratch
from forgefield.evaluation.style import PICTURES, STYLE, empty_figure, save
from forgefield.files import sha256_of

# before and after; the energies of a foundation model as it came belong to another level of theory
COMPARED = {"energy": ("refitted", "finetuned"), "forces": ("foundation", "finetuned")}


def plot_run(run: Path, config: PlotsConfig, data: Path | None = None, scratch: Path | None = None) -> list[Path]:
    """Draw a run; a picture of energies or forces that the data lack says so.

    These are the ``PICTURES`` of :mod:`~forgefield.evaluation.style`. That of the stress is only drawn where the data
    have virials. Pictures of before that are not drawn now are removed: they may be of other metrics.

    Args:
        run: the run's directory with ``metrics.json``, ``predictions_{split}.h5`` and ``history.csv``.
        config: the config's ``plots`` section.
        data: directory of the stores that ``data_overview`` shows; None: without it.
        scratch: the directory of a run from scratch on the same data, whose errors are shown beside.

    Returns:
        The pictures' paths.

    Raises:
        UserError: the run has not been evaluated, or a file is damaged.
    """
    if not (run / "metrics.json").exists():
        raise UserError(f"{run}: no metrics.json; evaluate the run first with `forgefield evaluate`")
    metrics, origin = read_metrics(run), sha256_of(run / "metrics.json")
    paths = []
    with rc_context(STYLE):
        for name, figure in [*_figures(run, metrics, data, scratch)]:  # all or none
            paths += save(figure, run / name, config, origin)
    for path in {run / f"{name}{suffix}" for name in PICTURES for suffix in (".png", ".svg")}.difference(paths):
        path.unlink(missing_ok=True)
    return paths


def _figures(
    run: Path, metrics: Metrics, data: Path | None, scratch: Path | None = None
) -> Iterator[tuple[str, Figure]]:
    split = shown_split(metrics.splits)
    found = dict(metrics.splits[split].variants())
    predictions = run / f"predictions_{split}.h5"
    require_predictions(predictions, metrics.predictions[split])
    beside = {"trained": read_scratch(scratch, split, predictions)} if scratch and "trained" not in found else {}
    files = {variant: other.predictions for variant, other in beside.items()}
    for name, quantity in QUANTITIES.items():
        variants = _compared(name, found)
        errors = {variant: getattr(found[variant], quantity.name) for variant in variants}
        if all(of_variant and of_variant.n for of_variant in errors.values()):
            errors |= _labelled(beside, quantity.name)
            yield f"parity_{name}", parity_figure(predictions, split, quantity, variants, errors, files)
        elif name in COMPARED:
            yield f"parity_{name}", empty_figure(f"the {split} data have no {name}")
    variants = _compared("forces", found)
    if all(found[variant].forces.n for variant in variants):
        variants += _labelled(beside, "forces")
        elements = {variant: other.elements for variant, other in beside.items()}
        yield "error_by_element", element_figure(metrics.parts[split].element, variants, elements)
        yield "error_by_force", magnitude_figure(predictions, variants, files)
    else:
        for name in ("error_by_element", "error_by_force"):
            yield name, empty_figure(f"the {split} data have no forces")
    yield "learning_curve", learning_curve_figure(run / "history.csv")
    if data is not None:
        yield "data_overview", overview_figure(data)


def _labelled(beside: Mapping[str, Scratch], quantity: str) -> dict[str, Errors]:
    """The errors of those runs that were evaluated for a quantity."""
    errors = {variant: getattr(other.errors, quantity) for variant, other in beside.items()}
    return {variant: of_variant for variant, of_variant in errors.items() if of_variant and of_variant.n}


def _compared(name: str, found: dict) -> list[str]:
    return [v for v in COMPARED.get(name, COMPARED["forces"]) if v in found] or ["trained"]
