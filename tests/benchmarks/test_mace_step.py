"""The benchmark from its command to the tables of docs/performance.md, on the smallest model and batch."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import mace_step
import pytest

from forgefield.files import read_json

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "performance.md"
SCRIPT = "benchmarks/mace_step.py"
# compiles sooner, and threads that wait leave the processor to other tests
QUICK = {"XLA_FLAGS": "--xla_backend_optimization_level=0", "OMP_WAIT_POLICY": "passive"}
COMMANDS = re.findall(rf"^python {SCRIPT}(.*)$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize("options", COMMANDS)
def test_commands_of_the_page_select_rows(options):
    assert mace_step.selected_rows(mace_step.parse(shlex.split(options)))


def test_the_page_has_all_rows_in_its_one_command():
    rows = mace_step.selected_rows(mace_step.parse(shlex.split(COMMANDS[0])))
    assert rows == mace_step.selected_rows(mace_step.parse([]))
    assert sum(row.mode == "train" for row in rows) == 5 * 3 * 2


def test_a_small_run_writes_results_and_tables(tmp_path):
    # a copy, so that its tables go into a copy of the page
    for folder in ("benchmarks", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    small = "--models 4x0e --systems ethanol --precision float64 --mode train --rounds 1"
    words = [sys.executable, SCRIPT, *shlex.split(COMMANDS[0] + " " + small)]
    done = subprocess.run(words, cwd=tmp_path, env={**os.environ, **QUICK}, check=True, text=True, stdout=-1)

    [entry] = read_json(tmp_path / "results/benchmarks/mace_step.json")["rows"]
    assert entry["row"] == {"model": "4x0e", "system": "ethanol", "precision": "float64", "mode": "train"}
    measured = entry["measured"]
    assert [len(seconds) for seconds in measured["seconds"].values()] == [1, 1]
    assert set(measured["differences"]) == {"energy", "forces", "loss", "gradient", "update"}
    assert measured["peak"].keys() == {"jax", "torch"}
    table = (tmp_path / "results/benchmarks/mace_step.md").read_text()
    assert table in done.stdout
    assert "| 4x0e | 2 x ethanol (9 atoms) | float64 |" in table
    page = (tmp_path / "docs/performance.md").read_text()
    assert page.startswith(PAGE.read_text().split("<!-- begin")[0])
    assert page.count("not measured") > 60
