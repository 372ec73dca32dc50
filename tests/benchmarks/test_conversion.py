"""The benchmark of conversions from its command to the tables of docs/performance.md, on small files."""

import shlex
from pathlib import Path

import ase.io
import conversion
import numpy as np

from forgefield.files import read_json

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
COMMAND = "python benchmarks/conversion.py"


def test_files_are_as_large_as_asked_for_and_no_two_structures_alike(tmp_path):
    conversion.write_file(tmp_path / "a.xyz", 10_000, 9, True)
    assert 10_000 <= (tmp_path / "a.xyz").stat().st_size < 11_000
    frames = ase.io.read(tmp_path / "a.xyz", ":")
    assert {len(atoms) for atoms in frames} == {9}
    assert all(atoms.pbc.all() for atoms in frames)
    assert len({atoms.positions.tobytes() for atoms in frames}) == len(frames) > 5
    assert frames[0].get_all_distances(mic=True)[np.triu_indices(9, 1)].min() > 1


def test_the_command_of_the_page_measures_and_writes_its_tables(tmp_path, monkeypatch, capsys):
    [options] = [line.removeprefix(COMMAND) for line in PAGE.read_text().splitlines() if line.startswith(COMMAND)]
    page, output = tmp_path / "page.md", tmp_path / "results.json"
    page.write_text(PAGE.read_text())
    monkeypatch.setattr(conversion, "PAGE", page)
    small = f" --cases '27 atoms' --mib 0.1 --sizes 0.1 --jobs 1 --rounds 2 --folder {tmp_path} --output {output}"
    assert conversion.main(shlex.split(options + small)) == 0
    measured = read_json(output)
    turns = measured["cases"]["27 atoms"]
    assert {side: len(found) for side, found in turns.items()} == {"ase": 2, "1": 2}
    assert len({turn["frames"] for found in turns.values() for turn in found}) == 1
    assert 50 < measured["sizes"]["0.1"]["1"]["peak_MiB"] < 1000
    table = output.with_suffix(".md").read_text()
    assert table in capsys.readouterr().out
    assert table in page.read_text()
    assert page.read_text().split("# Reading HDF5")[0] == PAGE.read_text().split("# Reading HDF5")[0]


def test_a_row_compares_rates_turn_by_turn():
    ase = [{"frames": 100, "seconds": s, "cpu_seconds": s} for s in (1.0, 2.0, 4.0)]
    ours = [{"frames": 100, "seconds": s, "cpu_seconds": 1.0} for s in (2.0, 2.0, 5.0)]
    results = {
        "machine": {"processor": "a", "cores": 1, "versions": {}},
        "sizes": {},
        "cases": {"x": {"ase": ase, "2": ours}},
    }
    line = conversion.markdown(results).splitlines()[-1]
    assert line == "| x | 100 | 50 | 2 | 50 | **0.80** (0.50 to 1.00) | **2.00** (1.00 to 4.00) | 3 |"
