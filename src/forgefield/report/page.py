"""The whole page: everything it needs is in the one file."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import yaml
from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.resources import INLINE
from jinja2 import Environment, Template

from forgefield import __version__
from forgefield.errors import UserError
from forgefield.files import atomic_file
from forgefield.report.collect import Run, flattened
from forgefield.report.faults import Faults
from forgefield.report.parity import filling, parity_tabs
from forgefield.report.pictures import Picture, fit_pictures
from forgefield.report.shown import Shown, choose_shown
from forgefield.report.table import runs_table

LIMIT = 4_900_000  # bytes: below 5 MB, with what is said of pictures, it can be mailed
PICTURES = 500_000  # of these, at least
POINTS = (100_000, 50_000, 25_000)  # of all plots together: as many as leave room for pictures


def write_report(runs: Sequence[Run], output: Path, faults: Faults | None = None) -> int:
    """Write the page that compares some runs.

    Args:
        runs: from :func:`read_runs`.
        output: the HTML file.
        faults: what becomes of damaged predictions or pictures of a run; by default it is an error.

    Returns:
        The number of runs.

    Raises:
        UserError: a run has a fault that is not tolerated, or ``output`` is a directory.
    """
    if output.is_dir():
        raise UserError(f"--output {output}: a directory; give the name of a file, such as {output / 'report.html'}")
    text = _fitting(runs, faults or Faults())
    with atomic_file(output) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return len(runs)


def _fitting(runs: Sequence[Run], faults: Faults) -> str:
    """The page with as many points and as large pictures as fit."""
    room = 0
    for most in POINTS:
        shown = choose_shown(runs, most, faults)
        room = LIMIT - len(_page(runs, shown, [[] for _ in runs], faults).encode())
        if room >= PICTURES:
            break
    return _page(runs, shown, fit_pictures(runs, room, faults), faults)


def _page(runs: Sequence[Run], shown: Sequence[Shown], pictures: list[list[Picture]], faults: Faults) -> str:
    tabs = parity_tabs(shown)
    document = Document()
    document.add_root(runs_table(runs))
    document.add_root(tabs)
    document.js_on_event("document_ready", *filling(tabs))
    variables = {
        "runs": runs,
        "faults": faults.lines,
        "pictures": pictures,
        "settings": _compared([flattened(run.config) for run in runs], differing=len(runs) > 1),
        "provenance": _compared([flattened(run.provenance) for run in runs], differing=False),
        "as_yaml": lambda content: yaml.safe_dump(content, sort_keys=False, allow_unicode=True),
        "version": __version__,
        "style": _asset("report.css"),
    }
    title = "forgefield: " + ", ".join(run.name for run in runs)
    return file_html(document, INLINE, title, template=_template(), template_variables=variables)


def _compared(contents: Sequence[dict[str, str]], *, differing: bool) -> dict[str, list[str]]:
    """Key -> its value in each run; only of keys in which runs differ, if so asked."""
    keys = dict.fromkeys(key for content in contents for key in content)
    rows = {key: [content.get(key, "–") for content in contents] for key in keys}
    return {key: values for key, values in rows.items() if not differing or len(set(values)) > 1}


def _template() -> Template:
    return Environment(autoescape=False).from_string(_asset("page.html"))


def _asset(name: str) -> str:
    return (files("forgefield.report") / "assets" / name).read_text(encoding="utf-8")
