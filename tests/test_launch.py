"""What tells a process of several which devices are its own, and processes on nodes that nobody has started."""

import os
import signal

import pytest

from forgefield import launch
from forgefield.config import load_config
from forgefield.errors import UserError
from forgefield.launch import here, processes
from forgefield.launch.children import Child, wait
from forgefield.trainers.stopping import Stop


def run_config(*overrides):
    content = {
        "dataset": "d",
        "model": "m",
        "datasets": {"d": {"source": "a.npz"}},
        "models": {"m": {"foundation": "m"}},
        "runs": {"r": {}},
    }
    return load_config(content, overrides).run("r")


@pytest.fixture
def environment(monkeypatch):
    """Gives this process an environment with nothing of a launcher's but what is given."""

    def give(**names):
        for name in ("CUDA_VISIBLE_DEVICES", here.JOB_NODES, *processes.RANKS, *processes.LOCAL_RANKS):
            monkeypatch.setenv(name, "")  # so that what the code sets is undone, too
            monkeypatch.delenv(name)
        for name, value in names.items():
            monkeypatch.setenv(name, value)

    return give


def test_a_rank_of_mpi_sees_its_own_gpu(environment):
    environment(OMPI_COMM_WORLD_LOCAL_RANK="1", CUDA_VISIBLE_DEVICES="4,7")
    launch.join(run_config("parallelism=mpi", "devices=2"))
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"


@pytest.mark.parametrize(
    ("overrides", "way_out"),
    [
        (["backend=fabric", "devices=4"], "`srun --nodes 2 --ntasks-per-node 4 forgefield ...`, or write n_nodes=1"),
        (["devices=4"], "`srun --nodes 2 --ntasks-per-node 1 forgefield ...`, or write n_nodes=1"),
        (["devices=4", "parallelism=mpi"], "`mpirun -n 8 --map-by ppr:4:node forgefield ...`, or write n_nodes=1"),
    ],
)
def test_nodes_of_a_job_that_nobody_has_started_are_refused(environment, overrides, way_out):
    environment(SLURM_JOB_NUM_NODES="2")
    with pytest.raises(UserError) as error:
        launch.require_here(run_config("n_nodes=2", *overrides))
    assert str(error.value) == f"n_nodes: 2 nodes are asked for, but this is one process; start it by {way_out}"


def test_without_a_job_all_processes_are_on_this_machine_which_is_said(environment, capsys):
    environment()
    config = run_config("n_nodes=2", "parallelism=jax", "devices=2")
    launch.require_here(config)
    assert capsys.readouterr().err.startswith("n_nodes: this is no job of several nodes, so what 2 would do is done")
    assert launch.process_count(config) == 2


@pytest.mark.parametrize(
    ("names", "first"),
    [({}, True), ({"RANK": "0"}, True), ({"RANK": "1"}, False), ({"SLURM_PROCID": "1", "RANK": "0"}, True)],
)
def test_one_process_speaks_for_all(environment, names, first):
    environment(**names)
    assert launch.is_first() is first


def test_whoever_started_the_processes_speaks_for_them(environment, monkeypatch):
    environment(RANK="0")
    monkeypatch.setenv(processes.FAILURE, "failure.json")
    assert not launch.is_first()


def test_a_process_that_was_killed_is_told_from_those_that_miss_it(tmp_path):
    ends = ["exit 0", "exit 3", "kill -ABRT $$", "kill -KILL $$"]
    children = [Child(["sh", "-c", end], dict(os.environ), signal.SIGKILL) for end in ends]
    for child in children:
        child.wait()
    assert wait(children, tmp_path / "failure.json", Stop()) == (3, -signal.SIGKILL)
