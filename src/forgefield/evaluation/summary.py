"""The end of a run in one table: zero-shot beside fine-tuned."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import HORIZONTALS
from rich.console import Console
from rich.table import Table

from forgefield.evaluation.errors import Errors, QuantityErrors
from forgefield.evaluation.metrics_file import VARIANTS, read_splits

COLUMNS = {"energy_per_atom": ("Energy", "meV/atom"), "forces": ("Forces", "meV/Å"), "stress": ("Stress", "meV/Å³")}

NO_LABELS = "–"


def summary_table(splits: Mapping[str, Mapping[str, QuantityErrors]]) -> Table:
    """MAE and RMSE of every split and variant, errors in meV/atom, meV/Å and meV/Å³; with all columns 80 wide."""
    quantities = [q for q in COLUMNS if any(getattr(by, q) for split in splits.values() for by in split.values())]
    table = Table(box=HORIZONTALS, collapse_padding=True, pad_edge=False)
    table.add_column("Split", no_wrap=True)
    table.add_column("Model")
    for quantity in quantities:
        name, unit = COLUMNS[quantity]
        for error in ("MAE", "RMSE"):
            table.add_column(f"{name}\n{error}\n{unit}", justify="right", no_wrap=True)
    for split, by_variant in splits.items():
        for variant, errors in by_variant.items():
            cells = [_milli(getattr(errors, q), e) for q in quantities for e in ("mae", "rmse")]
            table.add_row(split, VARIANTS[variant], *cells)
        table.add_section()
    return table


def _milli(errors: Errors | None, name: str) -> str:
    """A thousandth of the unit, to three digits, without an exponent for large errors."""
    if errors is None or not errors.n:
        return NO_LABELS
    value = 1000 * getattr(errors, name)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def print_summary(
    run: Path, console: Console | None = None, scratch: Path | None = None, drawn: Sequence[Path] = ()
) -> None:
    """Print the table of ``run/metrics.json``, what its words mean, and the paths of the parity plots that were drawn.

    ``scratch`` is a run from scratch on the same data, which is shown beside.
    """
    console = console or Console()
    splits = {split: dict(errors.variants()) for split, errors in read_splits(run).items()}
    for split, errors in (read_splits(scratch) if scratch else {}).items():
        if split in splits and "trained" not in splits[split] and errors.trained:
            splits[split]["trained"] = errors.trained
    variants = [errors for by_variant in splits.values() for errors in by_variant.values()]
    _line(console, f"Errors of {run.name}")
    console.print(summary_table(splits))
    if any("refitted" in by_variant for by_variant in splits.values()):
        _line(console, "refitted: energy shifts fitted to the training set, nothing else trained")
    if any(errors is not None and not errors.n for by in variants for _, errors in by):
        _line(console, f"{NO_LABELS}: no labels of this kind")
    for path in drawn:
        _line(console, f"Parity plot: {path}")


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)
