"""The whole page: everything it needs is in the one file."""

import base64
import io
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.resources import INLINE
from jinja2 import Environment, Template
from PIL import Image

from forgefield import __version__
from forgefield.errors import UserError
from forgefield.files import atomic_file
from forgefield.report.collect import Run, flattened
from forgefield.report.parity import filling, parity_tabs
from forgefield.report.shown import choose_shown
from forgefield.report.table import runs_table

WIDTH, QUALITY = 1000, 80  # of pictures: legible, and a tenth of the original's size


def write_report(runs: Sequence[Run], output: Path) -> int:
    """Write the page that compares some runs.

    Args:
        runs: from :func:`read_runs`.
        output: the HTML file.

    Returns:
        The number of runs.

    Raises:
        UserError: predictions or pictures of a run are damaged, or ``output`` is a directory.
    """
    if output.is_dir():
        raise UserError(f"--output {output}: a directory; give the name of a file, such as {output / 'report.html'}")
    text = _page(runs)
    with atomic_file(output) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return len(runs)


def _page(runs: Sequence[Run]) -> str:
    tabs = parity_tabs(choose_shown(runs))
    document = Document()
    document.add_root(runs_table(runs))
    document.add_root(tabs)
    document.js_on_event("document_ready", *filling(tabs))
    variables = {
        "runs": runs,
        "settings": _compared([flattened(run.config) for run in runs], differing=len(runs) > 1),
        "provenance": _compared([flattened(_origin(run)) for run in runs], differing=False),
        "as_yaml": lambda content: yaml.safe_dump(content, sort_keys=False, allow_unicode=True),
        "as_data": _picture,
        "version": __version__,
        "style": _asset("report.css"),
    }
    title = "forgefield: " + ", ".join(run.name for run in runs)
    return file_html(document, INLINE, title, template=_template(), template_variables=variables)


def _origin(run: Run) -> dict[str, Any]:
    """How, where and from what a run was trained."""
    hashes = run.sources() | run.provenance.get("sha256", {})
    return run.provenance | ({"sha256": hashes} if hashes else {})


def _compared(contents: Sequence[dict[str, str]], *, differing: bool) -> dict[str, list[str]]:
    """Key -> its value in each run; only of keys in which runs differ, if so asked."""
    keys = dict.fromkeys(key for content in contents for key in content)
    rows = {key: [content.get(key, "–") for content in contents] for key in keys}
    return {key: values for key, values in rows.items() if not differing or len(set(values)) > 1}


def _picture(path: Path) -> str:
    """A picture as the address that holds it."""
    try:
        with Image.open(path) as image:
            small = image.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises
        raise UserError(f"{path}: cannot be read ({error}); draw it again with `forgefield plot`") from None
    small.thumbnail((WIDTH, WIDTH))
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=QUALITY)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()


def _template() -> Template:
    return Environment(autoescape=False).from_string(_asset("page.html"))


def _asset(name: str) -> str:
    return (files("forgefield.report") / "assets" / name).read_text(encoding="utf-8")
