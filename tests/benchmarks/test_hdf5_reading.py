"""The benchmark of reading from its command to the tables of docs/performance.md, on small files."""

import shlex
from contextlib import ExitStack
from pathlib import Path

import hdf5_reading
import numpy as np
import pytest
from hdf5_layouts import LAYOUTS, MEMMAP, open_readers, write_case

from forgefield.files import read_json

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
COMMAND = "python benchmarks/hdf5_reading.py"


@pytest.fixture
def readers(tmp_path):
    with ExitStack() as stack:
        yield open_readers(stack, write_case(tmp_path, 50, 2, 5, list(LAYOUTS)))


def test_all_layouts_give_the_columns_of_the_memmap(readers):
    assert readers.keys() == {MEMMAP, *LAYOUTS}
    rows = np.array([49, 0, 7, 8])
    expected = readers[MEMMAP].columns(rows)
    assert set(expected) >= {"R", "F", "U", "species"}
    for name, reader in readers.items():
        found = reader.columns(rows)
        for key, values in expected.items():
            np.testing.assert_array_equal(found[key], values, err_msg=f"{name}: {key}")


def test_structures_of_the_memmap_are_those_of_the_store(readers):
    rows = np.array([3, 1])
    for found, expected in zip(readers[MEMMAP].structures(rows), readers["store"].structures(rows), strict=True):
        np.testing.assert_array_equal(found.positions, expected.positions)
        assert (found.energy, len(found)) == (expected.energy, len(expected))


def test_the_command_of_the_page_measures_and_writes_its_tables(tmp_path, monkeypatch, capsys):
    [options] = [line.removeprefix(COMMAND) for line in PAGE.read_text().splitlines() if line.startswith(COMMAND)]
    page, output = tmp_path / "page.md", tmp_path / "results.json"
    page.write_text(PAGE.read_text())
    monkeypatch.setattr(hdf5_reading, "PAGE", page)
    monkeypatch.setitem(hdf5_reading.CASES, "21 atoms", (64, 21, 21))
    small = f" --cases '21 atoms' --layouts store --rounds 2 --turn-seconds 0.01 --output {output}"
    assert hdf5_reading.main(shlex.split(options + small)) == 0
    measured = read_json(output)["cases"]["21 atoms"]
    assert measured["structures_per_second"].keys() == {"columns", "structures"}
    assert [len(rates) for rates in measured["structures_per_second"]["columns"]["8"].values()] == [2, 2]
    assert measured["file_bytes"]["store"] > 64 * measured["row_bytes"] > 64 * 21 * 48
    table = output.with_suffix(".md").read_text()
    assert table in capsys.readouterr().out
    assert "### 64 structures of 21 atoms" in table
    assert table in page.read_text()
    assert page.read_text().split("# Reading HDF5")[0] == PAGE.read_text().split("# Reading HDF5")[0]


def test_a_table_compares_each_turn_with_the_memmaps():
    rates = {"numpy.memmap": [100.0, 400.0, 200.0], "store": [80.0, 200.0, 150.0]}
    measured = {
        "structures": 3,
        "row_bytes": 2**20,
        "file_bytes": {"numpy.memmap": 3 * 2**20, "store": 2**20},
        "structures_per_second": {"columns": {"8": rates}, "structures": {"8": {"numpy.memmap": [1.0] * 3}}},
    }
    lines = hdf5_reading.markdown({"machine": {"processor": "a", "cores": 1, "versions": {}}, "cases": {"x": measured}})
    assert lines.splitlines()[-1] == "| store | 1.0 | 150 | 150 | **0.75** (0.50 to 0.80) |  |"
