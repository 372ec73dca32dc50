"""The errors of all runs in a table that is sorted by a click on a column's head."""

from collections.abc import Iterator, Sequence
from typing import Any

from bokeh.models import (
    ColumnDataSource,
    DataTable,
    InlineStyleSheet,
    NumberFormatter,
    StringFormatter,
    TableColumn,
)

from forgefield.evaluation.metrics_file import VARIANTS
from forgefield.evaluation.summary import COLUMNS
from forgefield.report.collect import Run

TEXTS = {"run": 190, "model": 135, "split": 50}  # widths
WIDTH, ROW = 95, 28
# heads of two lines, of which the second is the unit
HEAD = 36
STYLE = f".slick-header-column {{ white-space: normal; height: {HEAD}px !important; line-height: {HEAD // 2}px; }}"
UNITS = {f"{name} {error}": unit for name, unit in COLUMNS.values() for error in ("MAE", "RMSE")}


def runs_table(runs: Sequence[Run]) -> DataTable:
    """A row for each run, model and split: errors in thousandths of their units, and what training took."""
    rows = list(_rows(runs))
    numbers = [key for key in rows[0] if key not in TEXTS and any(row[key] is not None for row in rows)]
    columns = [
        TableColumn(field=key, title=key, width=width, formatter=StringFormatter()) for key, width in TEXTS.items()
    ]
    for key in numbers:
        whole = key == "epochs"
        form = NumberFormatter(format="0,0" if whole else "0,0.00", text_align="right", nan_format="–", null_format="–")
        title = f"{key} {UNITS[key]}" if key in UNITS else key
        columns.append(TableColumn(field=key, title=title, width=WIDTH, formatter=form, default_sort="ascending"))
    data = {key: [row[key] for row in rows] for key in (*TEXTS, *numbers)}
    return DataTable(
        source=ColumnDataSource(data),
        columns=columns,
        index_position=None,
        autosize_mode="none",
        reorderable=False,
        width=sum(TEXTS.values()) + WIDTH * len(numbers) + 20,
        height=ROW * min(len(rows), 20) + HEAD + 30,
        row_height=ROW,
        name="runs",
        stylesheets=[InlineStyleSheet(css=STYLE)],
    )


def _rows(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    for run in runs:
        trained = run.provenance.get("trained") or {}
        for split, by_variant in run.splits.items():
            for variant, errors in by_variant.variants():
                is_result = variant in ("finetuned", "trained")
                yield {
                    "run": run.name,
                    "model": VARIANTS[variant],
                    "split": split,
                    **_errors(errors),
                    "epochs": trained.get("epochs") if is_result else None,
                    "minutes": trained["seconds"] / 60 if is_result and "seconds" in trained else None,
                }


def _errors(errors: Any) -> dict[str, float | None]:
    found = {}
    for quantity, (name, _) in COLUMNS.items():
        of_quantity = getattr(errors, quantity)
        for error in ("mae", "rmse"):
            value = getattr(of_quantity, error) if of_quantity and of_quantity.n else None
            found[f"{name} {error.upper()}"] = None if value is None else 1000 * value
    return found
