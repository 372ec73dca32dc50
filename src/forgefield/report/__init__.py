"""``report.html``: one page, in one file, that compares runs and shows which structure a point of a parity plot is."""

from forgefield.report.collect import Run, read_runs
from forgefield.report.faults import Faults
from forgefield.report.page import write_report

__all__ = ["Faults", "Run", "read_runs", "write_report"]
