"""The benchmarks of several devices from their commands to their results, on the smallest trainings."""

import os
import subprocess
import sys
from pathlib import Path

import devices
import pytest

from forgefield.files import read_json

ROOT = Path(__file__).resolve().parents[2]
COUNTS = [1, 2][: len(os.sched_getaffinity(0))]
PRESET = """
dataset: glycolaldehyde
datasets:
  glycolaldehyde:
    source: resources/glycolaldehyde/glycolaldehyde_pbe.npz
    units: {energy: kcal/mol, length: angstrom}
    split: {train: 8, valid: 2, test: 2}
model: tiny
models:
  tiny: {elements: [H, C, O], r_max: 3.0, hidden_channels: 2, l_max: 1, correlation: 1, n_interactions: 1}
training: {batch: 4}
"""


def measured(script, output, *words):
    options = ["--rounds", 1, "--epochs", 2, "--devices", *COUNTS, "--output", output]
    subprocess.run([sys.executable, f"benchmarks/{script}.py", *map(str, [*words, *options])], cwd=ROOT, check=True)
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    return read_json(output)["runs"]


@pytest.mark.parametrize("script", ["scaling", "md22"])
def test_a_small_run_writes_rates_waiting_times_and_a_plot(tmp_path, script):
    (tmp_path / "preset.yaml").write_text(PRESET)
    words = {
        "scaling": ["--system", "ethanol", "--model", "4x0e", "--structures", 8, "--batch", 4],
        "md22": ["--preset", tmp_path / "preset.yaml", "--set", "training.precision=float64"],
    }
    runs = measured(script, tmp_path / "measured.json", *words[script])
    assert runs.keys() == {f"{method} {n}" for method in ("jax", "mpi") for n in COUNTS}
    for row in runs.values():
        assert row["median"] == row["structures_per_second"][0] > 0
        assert row["data_wait_ms_per_step"] >= 0
    assert {runs["jax 1"]["speedup"], runs["mpi 1"]["speedup"]} == {1.0}


def test_rounds_are_summed_up_by_their_medians():
    def rounds(*rates):
        return [{"rate": rate, "wait": wait} for rate, wait in zip(rates, (3.0, 1.0, 2.0), strict=True)]

    runs = {
        "jax 1": rounds(10, 20, 40),
        "jax 2": rounds(20, 30, 20),
        "mpi 1": rounds(1, 1, 1),
        "mpi 2": rounds(1, 2, 3),
    }
    found = devices.summary(runs, [1, 2])
    assert [found[key]["speedup"] for key in ("jax 1", "jax 2", "mpi 2")] == [1.0, 1.5, 2.0]
    assert (found["jax 2"]["median"], found["jax 2"]["data_wait_ms_per_step"]) == (20, 2.0)
