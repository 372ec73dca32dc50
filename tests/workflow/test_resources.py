"""Resources that contradict a run's devices and nodes are refused before anything is submitted."""

import json

import pytest

TWO_RANKS = {"parallelism": "mpi", "devices": 1, "n_nodes": 2}
FOUR_RANKS = TWO_RANKS | {"devices": 2}


@pytest.mark.parametrize(
    ("run", "resources", "problem"),
    [
        (TWO_RANKS, ["train:tasks=1"], "tasks is 1, but run r with devices: 1 and n_nodes: 2 needs 2"),
        (TWO_RANKS, ["evaluate:tasks=4"], "tasks is 4, but run r with devices: 1 and n_nodes: 2 needs 2"),
        (FOUR_RANKS, ["train:tasks_per_node=4"], "tasks_per_node is 4, but run r with devices: 2 and n_nodes"),
        (TWO_RANKS, ["train:nodes=1"], "nodes is 1, but run r with devices: 1 and n_nodes: 2 needs 2"),
        ({"devices": 2, "slurm": {"gpus": "a100"}}, ["train:gres=gpu:a100:4"], "gres is gpu:a100:4, but run r with"),
        ({"devices": 2, "slurm": {"gpus": True}}, ["train:tasks_per_gpu=2"], "tasks_per_gpu is 2, but run r with"),
        ({}, ["train:mpi=srun"], "mpi is srun, but run r with devices: 1 and n_nodes: 1 needs none"),
        ({}, ["train:gpu=2"], "gpu is 2, but forgefield asks for tasks and GPUs itself"),
    ],
)
def test_resources_that_do_not_fit_are_refused(workspace, run, resources, problem):
    path = workspace.path / "config" / "config.yaml"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"runs": {"r": run}}))
    done = workspace.run("--dry-run", "--set-resources", *resources)
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    assert errors[0].startswith(f"error: resources: {problem}")
    assert "leave " in errors[0]
    assert "Traceback" not in done.stderr


def test_what_else_users_ask_for_by_default_reaches_jobs_of_several_tasks_which_count_their_own(workspace):
    path = workspace.path / "config" / "config.yaml"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"runs": {"r": FOUR_RANKS}}))
    done = workspace.run("--dry-run", "--default-resources", "slurm_extra='--exclusive --ntasks-per-node=4'")
    assert done.returncode != 0
    assert "error: resources: slurm_extra is --exclusive --ntasks-per-node=4, but forgefield asks" in done.stderr


def test_another_launcher_is_for_mpi_only(workspace):
    done = workspace.run("--dry-run", "--config", "slurm={launcher: mpirun}")
    assert done.returncode == 2
    assert "slurm.launcher is mpirun, which is for parallelism: mpi; write srun" in done.stderr
