"""The default run, shortened, on two nodes."""

import json
import shutil
import subprocess
import sys

import pytest
import yaml

NODES = {"devices": 1, "n_nodes": 2}
RUNS = {
    "ranks": NODES | {"parallelism": "mpi"},
    "nodes": NODES | {"parallelism": "jax"},
    "torch": NODES | {"backend": "fabric", "training": {"batching": "fixed"}},
}


@pytest.mark.slow
def test_the_default_run_ends_with_the_numbers_of_one_process_by_every_method(root, clone_of):
    clone = clone_of()
    content = yaml.safe_load((root / "config" / "config.yaml").read_text())
    content["training"] |= {"epochs": 2, "precision": "float64"}
    content["datasets"]["glycolaldehyde"]["split"] |= {"train": 40, "valid": 10, "test": 10}
    slurm = {"cpus_per_device": 1, "mem_mb": 4000, "hours": 0.5}
    shutil.copytree(root / "resources", clone.path / "resources", dirs_exist_ok=True)
    (clone.path / "config" / "config.yaml").write_text(json.dumps(content | {"slurm": slurm, "runs": RUNS}))
    clone.run()
    assert len(clone.submitted()) == 4 + 3 * len(RUNS), clone.written()  # conversion, import, statistics, report
    clone.configure(runs=RUNS | {"here": {}})
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "results/runs/here/metrics.json"]
    here = subprocess.run(command, cwd=clone.path, env=clone.environment, capture_output=True, text=True, timeout=900)
    assert here.returncode == 0, here.stderr
    expected = _errors(clone, "here")
    assert len(expected) > 2
    for run in RUNS:
        assert (clone.results / "runs" / run / "parity_forces.png").exists()
        assert _errors(clone, run) == pytest.approx(expected, rel=1e-8), run


def _errors(clone, run):
    metrics = json.loads((clone.results / "runs" / run / "metrics.json").read_text())
    return dict(_numbers(metrics["splits"]["test"]["finetuned"]))


def _numbers(content, path=()):
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _numbers(value, (*path, key))
    elif isinstance(content, float):
        yield path, content
