"""The table of what more devices give in docs/parallel.md, and its picture."""

import re
from collections.abc import Sequence
from pathlib import Path

from devices import LABELS, Curves, Table, scaling_figure, write_picture
from report import END, begin, ratio, table, update_page

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, PICTURE = DOCS / "parallel.md", DOCS / "images" / "scaling.svg"
HEAD = ("model", "batch", "devices", *LABELS.values())
KEYS = 3  # columns that tell rows apart
NUMBER = r"(\d+\.\d+)"
Rows = dict[tuple[str, ...], list[str]]


def update(model: str, batch: int, devices: Sequence[int], measured: Table, page: Path = PAGE) -> None:
    """Put what was measured into the page's table, whose other rows stay, and draw all of it."""
    rows = read_rows(page)
    for n in devices[1:]:
        rates = [[measured[f"{way} {m}"]["structures_per_second"] for m in (devices[0], n)] for way in LABELS]
        rows[model, str(batch), str(n)] = [ratio(several, one, 2) for one, several in rates]
    update_page(page, "scaling.py", table(HEAD, [[*key, *cells] for key, cells in sorted(rows.items())], 1) + "\n")
    write_picture(scaling_figure(curves(rows)), page.parent / PICTURE.relative_to(DOCS))


def read_rows(page: Path) -> Rows:
    """The rows of the page's table."""
    text = page.read_text().partition(begin("scaling.py"))[2].partition(END)[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()]
    return {tuple(cells[:KEYS]): cells[KEYS:] for cells in lines[2:]}


def curves(rows: Rows) -> Curves:
    """Numbers of devices and what they give, median, least and most, of each line of the picture."""
    found: Curves = {}
    for (model, batch, devices), cells in rows.items():
        for label, cell in zip(LABELS.values(), cells, strict=True):
            median, low, high = map(float, re.findall(NUMBER, cell))
            start = [(1, 1.0, 1.0, 1.0)]
            found.setdefault(f"{model}, batch {batch}: {label}", start).append((int(devices), median, low, high))
    return found
