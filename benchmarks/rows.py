"""Measured rows in a file, which is written after each of them."""

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from forgefield.files import read_json, write_json

PACKAGES = ("forgefield", "jax", "torch", "mace-torch", "e3nn")


class Row(NamedTuple):
    """What one row of the tables compares."""

    model: str
    system: str
    precision: str
    mode: str


class Results:
    """Rows by model, system, precision and mode; those of another machine or other versions are not kept.

    Attributes:
        machine: processor, cores and versions.
        rows: what was measured, by row.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.machine = path, machine(PACKAGES)
        self.rows: dict[Row, dict[str, Any]] = {}
        if path.exists() and (content := read_json(path))["machine"] == self.machine:
            self.rows = {Row(**entry["row"]): entry["measured"] for entry in content["rows"]}

    def add(self, row: Row, measured: dict[str, Any]) -> None:
        """Keep a measured row, in place of an earlier one."""
        self.rows[row] = measured
        self._write()

    def discard(self, row: Row) -> None:
        """Forget a row, if it was measured earlier."""
        self.rows.pop(row, None)
        self._write()

    def _write(self) -> None:
        rows = [{"row": row._asdict(), "measured": measured} for row, measured in self.rows.items()]
        write_json(self.path, {"machine": self.machine, "rows": rows})


def machine(packages: Sequence[str]) -> dict[str, Any]:
    """Processor, cores that may be used, and versions of packages."""
    names = [
        line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    return {
        "processor": names[0] if names else "unknown",
        "cores": len(os.sched_getaffinity(0)),
        "versions": {package: version(package) for package in packages},
    }
