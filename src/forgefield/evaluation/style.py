"""How all pictures look: made for half the width of a page, in colors that color-blind readers tell apart."""

from pathlib import Path

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from PIL import Image

from forgefield.config.evaluation import PlotsConfig
from forgefield.files import atomic_file

# Okabe and Ito (2008)
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "0.45"
# inches; a picture of two columns is printed at 0.8 of its size, where its letters have 7 points
COLUMN, WIDE = 3.3, 4.1
STYLE = {
    "font.size": 9,
    "axes.linewidth": 0.6,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "svg.fonttype": "path",
    "svg.hashsalt": "forgefield",
}
COLORS = {"foundation": ORANGE, "refitted": ORANGE, "finetuned": BLUE, "trained": GREEN}
"""Of each variant of the model."""
PICTURES = (
    *("parity_energy", "parity_forces", "parity_stress", "error_by_element", "error_by_force"),
    *("learning_curve", "data_overview"),
)
"""The names of all pictures of a run; another file beside them is the user's own."""
ORIGIN = "metrics_sha256"


def plain_logarithm(axis: Axis) -> None:
    """A logarithmic axis with plain numbers: 1, 2, 5 of each decade, or 1 where there are many."""
    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def empty_figure(why: str) -> Figure:
    """What stands for a picture of which there are no data."""
    figure = Figure(figsize=(COLUMN, 1.0), layout="constrained")
    figure.text(0.5, 0.5, why, ha="center", va="center", color=GREY)
    return figure


def save(figure: Figure, stem: Path, config: PlotsConfig, origin: str) -> list[Path]:
    """Write a figure as PNG and SVG; equal numbers give equal bytes. PNGs hold ``origin``: see :func:`origin_of`."""
    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    for path, metadata in zip(paths, ({ORIGIN: origin}, {"Date": None}), strict=True):
        with atomic_file(path) as temporary:
            figure.savefig(temporary, format=path.suffix[1:], dpi=config.dpi, metadata=metadata)
    return paths


def origin_of(picture: Path) -> str | None:
    """The sha256 of the ``metrics.json`` that a PNG was drawn from, where it was.

    Raises:
        OSError, SyntaxError, ValueError: it is damaged.
    """
    with Image.open(picture) as image:
        return image.info.get(ORIGIN)
