"""All stages on two nodes, by each way to start two processes, with the numbers of one process on one machine."""

import json
import subprocess
import sys

import pytest

NODES = {"devices": 1, "n_nodes": 2}
RUNS = {
    # GPUs that are none: only the request is tried
    "ranks": NODES | {"parallelism": "mpi", "slurm": {"gpus": True}},
    "nodes": NODES | {"parallelism": "jax"},
    "torch": NODES | {"backend": "fabric", "training": {"batching": "fixed"}},
}
# PyTorch rounds otherwise than JAX in every step
TOLERANCE = {"torch": 1e-8}


@pytest.fixture(scope="module")
def computed(clone_of):
    """A clone in which the runs are done on two nodes, and one without Slurm."""
    clone = clone_of(runs=RUNS)
    clone.run()
    clone.said = clone.written()
    clone.numbers = clone.submitted()
    clone.configure(runs=RUNS | {"one": {}})
    target = "results/runs/one/metrics.json"
    command = [sys.executable, "-m", "snakemake", "--cores", "2", target]
    local = subprocess.run(command, cwd=clone.path, env=clone.environment, capture_output=True, text=True, timeout=900)
    assert local.returncode == 0, local.stderr
    return clone


def test_every_stage_is_one_job(computed):
    # conversion, import, statistics and report; training, evaluation and plots of each run
    assert len(computed.numbers) == 4 + 3 * len(RUNS), computed.said


@pytest.mark.parametrize("run", RUNS)
def test_two_nodes_give_the_numbers_of_one_process(computed, run):
    runs = computed.results / "runs"
    require_same_numbers(runs / run, runs / "one", TOLERANCE.get(run, 1e-10))


@pytest.mark.parametrize("run", RUNS)
def test_each_process_has_a_log_which_says_where_it_was(computed, run):
    folder = computed.results / "runs" / run / "ranks"
    assert sorted(path.name for path in folder.iterdir()) == ["rank_0.log", "rank_1.log"]
    for rank in (0, 1):
        first, *_ = (folder / f"rank_{rank}.log").read_text().splitlines()
        assert first.startswith(f"rank {rank} on n{rank + 1}, job ")


def test_one_stage_again_is_one_job(computed):
    said = computed.run("--forcerun", "evaluate", "--", "results/runs/ranks/metrics.json")
    assert len(computed.submitted()) == 1, said
    assert "Evaluating run ranks" in said


@pytest.mark.slow
def test_mpirun_starts_ranks_on_two_nodes_too(computed, prepared, clone_of):
    run = NODES | {"parallelism": "mpi", "slurm": {"launcher": "mpirun"}}
    clone = clone_of(prepared, runs={"by-mpirun": run})
    clone.run("results/runs/by-mpirun/metrics.json")
    require_same_numbers(clone.results / "runs" / "by-mpirun", computed.results / "runs" / "one", 1e-10)
    assert (clone.results / "runs/by-mpirun/ranks/rank_1.log").read_text().startswith("rank 1 on n2, job ")


@pytest.mark.slow
def test_twenty_small_runs_at_once(prepared, clone_of):
    runs = {f"run-{i}": {"training": {"seed": i}} for i in range(20)}
    clone = clone_of(prepared, runs=runs, slurm={"cpus_per_device": 1, "mem_mb": 1500, "hours": 0.5})
    models = [f"results/runs/{run}/model/model.json" for run in runs]
    clone.run("--", *models)
    assert len(clone.submitted()) == len(runs)
    assert all((clone.path / model).exists() for model in models)


@pytest.mark.slow
def test_two_ranks_on_one_node_get_what_else_the_user_asks_for(computed, prepared, clone_of):
    clone = clone_of(prepared, runs={"pair": {"devices": 2, "parallelism": "mpi"}})
    clone.run("--default-resources", "slurm_extra='--nice=7'", "--", "results/runs/pair/metrics.json")
    require_same_numbers(clone.results / "runs" / "pair", computed.results / "runs" / "one", 1e-10)
    for job in clone.submitted():
        shown = subprocess.run(
            ["scontrol", "-o", "show", "job", job], capture_output=True, text=True, check=True
        ).stdout
        assert " NumNodes=1 NumCPUs=2 NumTasks=2 " in shown
        assert " Nice=7 " in shown


def require_same_numbers(run, other, tolerance):
    numbers, others = (dict(_numbers(json.loads((path / "metrics.json").read_text()))) for path in (run, other))
    assert numbers == pytest.approx(others, rel=tolerance, abs=1e-12)
    assert len(numbers) > 10


def _numbers(content, path=()):
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _numbers(value, (*path, key))
    elif isinstance(content, float | int):
        yield path, content
