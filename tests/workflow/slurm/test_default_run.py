"""The default run, shortened, on two nodes."""

import json
import shutil

import pytest
import yaml

NODES = {"devices": 1, "n_nodes": 2}
RUNS = {
    "ranks": NODES | {"parallelism": "mpi"},
    "nodes": NODES | {"parallelism": "jax"},
    "torch": NODES | {"backend": "fabric", "training": {"batching": "fixed"}},
}


@pytest.mark.slow
def test_the_default_run_ends_with_the_same_numbers_by_every_method(root, clone_of):
    clone = clone_of()
    content = yaml.safe_load((root / "config" / "config.yaml").read_text())
    content["training"] |= {"epochs": 2, "precision": "float64"}
    content["datasets"]["glycolaldehyde"]["split"] |= {"train": 40, "valid": 10, "test": 10}
    slurm = {"cpus_per_device": 1, "mem_mb": 4000, "hours": 0.5}
    shutil.copytree(root / "resources", clone.path / "resources", dirs_exist_ok=True)
    (clone.path / "config" / "config.yaml").write_text(json.dumps(content | {"slurm": slurm, "runs": RUNS}))
    clone.run()
    assert len(clone.submitted()) == 4 + 3 * len(RUNS), clone.written()  # conversion, import, statistics, report
    errors = {}
    for run in RUNS:
        assert (clone.results / "runs" / run / "parity_forces.png").exists()
        metrics = json.loads((clone.results / "runs" / run / "metrics.json").read_text())
        errors[run] = metrics["splits"]["test"]["finetuned"]
    for run in RUNS:
        numbers, expected = (dict(_numbers(errors[name])) for name in (run, "ranks"))
        assert numbers == pytest.approx(expected, rel=1e-8), run
        assert len(numbers) > 2


def _numbers(content, path=()):
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _numbers(value, (*path, key))
    elif isinstance(content, float):
        yield path, content
