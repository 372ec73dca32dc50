"""The end of a run in one table: zero-shot beside fine-tuned."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from forgefield.files import read_json

VARIANTS = {
    "foundation": "zero-shot",
    "refitted": "zero-shot, refitted",
    "finetuned": "fine-tuned",
    "trained": "from scratch",
}
COLUMNS = {"energy_per_atom": ("Energy", "meV/atom"), "forces": ("Forces", "meV/Å"), "stress": ("Stress", "meV/Å³")}


def summary_table(run: Path) -> Table:
    """MAE and RMSE of every split and variant in ``run/metrics.json``, errors in meV/atom, meV/Å and meV/Å³."""
    splits = read_json(run / "metrics.json")["splits"]
    quantities = [q for q in COLUMNS if any(q in by for split in splits.values() for by in split.values())]
    table = Table(title=f"Errors of {run.name}", title_justify="left")
    table.add_column("Split")
    table.add_column("Model")
    for quantity in quantities:
        name, unit = COLUMNS[quantity]
        for error in ("MAE", "RMSE"):
            table.add_column(f"{name}\n{error}\n{unit}", justify="right")
    for split, by_variant in splits.items():
        for variant, errors in by_variant.items():
            cells = [_milli(errors[q], e) for q in quantities for e in ("mae", "rmse")]
            table.add_row(split, VARIANTS[variant], *cells)
        table.add_section()
    if any("refitted" in by_variant for by_variant in splits.values()):
        table.caption = "refitted: energy shifts fitted to the training set, nothing else trained"
        table.caption_justify = "left"
    return table


def _milli(errors: dict[str, Any], name: str) -> str:
    """A thousandth of the unit, to three digits, without an exponent for large errors."""
    if errors[name] is None:
        return "no labels"
    value = 1000 * errors[name]
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def print_summary(run: Path, console: Console | None = None) -> None:
    """Print the table and the paths of the run's parity plots."""
    console = console or Console()
    console.print(summary_table(run))
    for path in sorted(run.glob("parity_*.png")):
        console.print(f"Parity plot: {path}", highlight=False, soft_wrap=True)
