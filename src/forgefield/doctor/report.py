"""The doctor's report on the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from forgefield.doctor.findings import Finding

TITLES = {
    "packages": "Packages",
    "devices": "Devices",
    "programs": "Programs",
    "methods": "Engines and parallel methods: can they run here?",
    "slurm": "Slurm",
}
STYLES = {"ok": "green", "missing": "yellow", "broken": "red", "note": "cyan"}


def report(findings: Sequence[Finding], console: Console | None = None) -> None:
    """Print one table per section, and in words what to do about what is not well.

    Args:
        findings: As from :func:`forgefield.doctor.diagnose`.
        console: Where to print; stdout if None.
    """
    console = console or Console()
    for section, title in TITLES.items():
        if not any(finding.section == section for finding in findings):
            continue
        table = Table(title=title, title_justify="left", show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for finding in (finding for finding in findings if finding.section == section):
            table.add_row(finding.name, _status(finding), _text(finding))
        console.print(table)


def _status(finding: Finding) -> str:
    word = finding.status
    if finding.section == "methods":
        word = "yes" if finding.status == "ok" else "no"
    return f"[{STYLES[finding.status]}]{word}[/]"


def _text(finding: Finding) -> str:
    return escape(f"{finding.detail}\n-> {finding.remedy}" if finding.remedy else finding.detail)
