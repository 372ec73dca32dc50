"""Two parity plots beside each other, of any run and model, in which a point tells which structure it is."""

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from ase.data import chemical_symbols
from bokeh.layouts import column, row
from bokeh.models import (
    ColumnDataSource,
    CustomJS,
    CustomJSHover,
    Div,
    HoverTool,
    LayoutDOM,
    Range1d,
    Select,
    Slope,
    TabPanel,
    Tabs,
    TapTool,
)
from bokeh.plotting import figure

from forgefield.evaluation.metrics_file import VARIANTS
from forgefield.evaluation.parity_values import QUANTITIES, Quantity
from forgefield.report.shown import COLUMNS, Shown

BLUE, ORANGE = "#0072B2", "#D55E00"  # told apart by color-blind readers (Okabe and Ito)
MARKS = {
    "size": 4,
    "line_color": None,
    "fill_color": BLUE,
    "fill_alpha": 0.5,
    "selection_fill_color": ORANGE,
    "selection_fill_alpha": 1.0,
    "nonselection_fill_color": BLUE,
    "nonselection_fill_alpha": 0.1,
}
HELP = "Point at a value to see its structure; click it to mark all values of that structure in both plots."
WORDS = {"structure": "@structure{custom}", "value": "@place{custom}"}
NUMBERS = {"reference": "@x{0.0000}", "predicted": "@y{0.0000}"}


def parity_tabs(shown: Sequence[Shown]) -> Tabs:
    """A tab for each quantity that a run has."""
    tabs = []
    for name, quantity in QUANTITIES.items():
        if of_quantity := [s for s in shown if s.quantity is quantity]:
            tabs.append(TabPanel(child=_Panels(quantity, of_quantity).layout(), title=name.capitalize()))
    return Tabs(tabs=tabs, name="parity")


class _Panels:
    """Both plots of a quantity, and what is known of the structure of the point that was clicked."""

    def __init__(self, quantity: Quantity, shown: Sequence[Shown]) -> None:
        self._quantity, self._shown = quantity, shown
        options = list(_options(shown))
        first, last = _best(shown[0].variants)
        self._choices = [
            Select(options=options, value=f"0:{variant}", width=400, name=f"{quantity.column} {i} choice")
            for i, variant in enumerate((first, last))
        ]
        empty = dict.fromkeys(("x", "y", *COLUMNS), ())
        self._sources = [ColumnDataSource(empty) for _ in self._choices]
        self._ranges = [Range1d(0, 1), Range1d(0, 1)]
        self._details = Div(text=f"<p>{HELP}</p>", width=280)
        self._known = {
            "stores": [ColumnDataSource(s.columns()) for s in shown],
            "tables": [ColumnDataSource(s.structures.columns) for s in shown],
            "formulas": [s.structures.formulas for s in shown],
            "files": [s.structures.files for s in shown],
            "symbols": chemical_symbols,
            "kind": quantity.column,
            "unit": quantity.unit,
            "choices": self._choices,
            "sources": self._sources,
            "ranges": self._ranges,
            "details": self._details,
        }

    def layout(self) -> LayoutDOM:
        """The whole of it."""
        plots = [self._plot(i) for i in range(2)]
        panels = [column(choice, plot) for choice, plot in zip(self._choices, plots, strict=True)]
        return row(*panels, column(Div(text=_counts(self._shown), width=280), self._details))

    def _plot(self, i: int) -> figure:
        """The left or the right plot, which shows what its choice says."""
        quantity, source, choice = self._quantity, self._sources[i], self._choices[i]
        known = self._known | {"source": source, "choice": choice}
        plot = figure(
            name=f"{quantity.column} {i}",
            width=400,
            height=400,
            x_range=self._ranges[0],
            y_range=self._ranges[1],
            output_backend="webgl",
            tools="pan,wheel_zoom,box_zoom,reset,save",
            active_scroll="wheel_zoom",
            x_axis_label=f"reference {self._shown[0].label} ({quantity.unit})",
            y_axis_label=f"predicted {self._shown[0].label} ({quantity.unit})",
        )
        plot.toolbar.logo = None
        plot.add_layout(Slope(gradient=1, y_intercept=0, line_color="#555555", line_width=1))
        points = plot.scatter("x", "y", source=source, **MARKS)
        words = {f"@{name}": CustomJSHover(args=known, code=_script(f"{name}.js")) for name in ("structure", "place")}
        plot.add_tools(
            HoverTool(renderers=[points], tooltips=[*(WORDS | NUMBERS).items()], formatters=words, limit=1),
            TapTool(renderers=[points], mode="replace", callback=CustomJS(args=known, code=_script("pick.js"))),
        )
        choice.js_on_change("value", CustomJS(args=known, code=_script("show.js")))
        return plot


def _best(variants: Sequence[str]) -> tuple[str, str]:
    """What is best compared: the start of training, with refitted energy shifts, and its end."""
    return ("refitted" if "refitted" in variants else variants[0]), variants[-1]


def _options(shown: Sequence[Shown]) -> Iterator[tuple[str, str]]:
    """What a plot can show: number of the run and name of the model, and how it is called."""
    for number, s in enumerate(shown):
        for variant in s.variants:
            yield f"{number}:{variant}", f"{s.run.name}: {VARIANTS[variant]}"


def _counts(shown: Sequence[Shown]) -> str:
    is_part = any(s.n < s.points.total for s in shown)
    chosen = " The largest errors are among them; the others were drawn at random." if is_part else ""
    return f"<p>{'<br>'.join(escape(s.count()) for s in shown)}.{chosen}</p>"


def filling(tabs: Tabs) -> list[CustomJS]:
    """What fills the plots when the page is there, so that no value is in it twice."""
    return [
        script for select in tabs.select({"type": Select}) for script in select.js_property_callbacks["change:value"]
    ]


def _script(name: str) -> str:
    return (files("forgefield.report") / "assets" / name).read_text(encoding="utf-8")
