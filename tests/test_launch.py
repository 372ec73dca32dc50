"""What tells a process of several which devices are its own, and processes on nodes that nobody has started."""

import os
import signal
import socket
import subprocess

import pytest

from forgefield import launch
from forgefield.config import load_config
from forgefield.errors import MachineError, UserError
from forgefield.launch import here, in_job, network, processes
from forgefield.launch.children import wait
from forgefield.launch.slurm import allocation
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
        for name in (
            "CUDA_VISIBLE_DEVICES",
            "SLURM_JOB_ID",
            processes.MEETING,
            processes.GLOO,
            here.JOB_NODES,
            "SLURM_PROCID",
            "SLURM_LOCALID",
            *processes.OWN,
        ):
            monkeypatch.setenv(name, "")  # so that what the code sets is undone, too
            monkeypatch.delenv(name)
        for name, value in names.items():
            monkeypatch.setenv(name, value)

    return give


# GPUs that are none: what sites let the tasks of a node see, by the number of the task
SITES = {
    "all of the node, by number": lambda task: "0,1,2,3",
    "those of the job, not from 0": lambda task: "4,5,6,7",
    "all of the node, by UUID": lambda task: "GPU-a0,GPU-b1,GPU-c2,GPU-d3",
    "parts of one": lambda task: "MIG-a0, MIG-b1, MIG-c2, MIG-d3",
    "its own, by its number on the node": lambda task: str(task),
    "its own, by UUID": lambda task: f"GPU-{task}",
    "nothing is said": lambda task: None,
}


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID"])
@pytest.mark.parametrize("site", SITES)
def test_each_rank_of_mpi_sees_one_gpu_of_its_own(environment, site, variable):
    seen = set()
    for task in range(4):
        given = SITES[site](task)
        environment(**{variable: str(task)}, **({} if given is None else {"CUDA_VISIBLE_DEVICES": given}))
        launch.join(run_config("parallelism=mpi", "devices=4"))
        seen.add(os.environ["CUDA_VISIBLE_DEVICES"])
    assert len(seen) == 4
    assert not any(set(device) & set(", ") for device in seen)


@pytest.mark.parametrize("given", ["0", "", "NoDevFiles"])
def test_the_only_gpu_that_a_site_shows_each_task_or_none_stays_what_it_is(environment, given):
    # where the kernel hides the others, each task's own is number 0
    for task in range(4):
        environment(SLURM_LOCALID=str(task), CUDA_VISIBLE_DEVICES=given)
        launch.join(run_config("parallelism=mpi", "devices=4"))
        assert os.environ["CUDA_VISIBLE_DEVICES"] == given


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


def test_a_step_of_a_small_job_does_not_do_the_work_of_several_nodes(environment, monkeypatch):
    environment(SLURM_JOB_ID="7")
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    with pytest.raises(UserError, match="2 nodes are asked for, but this is one process"):
        launch.require_here(run_config("n_nodes=2"))
    launch.require_here(run_config())


def test_without_a_job_all_processes_are_on_this_machine_which_is_said(environment, capsys):
    environment()
    config = run_config("n_nodes=2", "parallelism=jax", "devices=2")
    launch.require_here(config)
    assert capsys.readouterr().err.startswith("n_nodes: this is no job of several nodes, so what 2 would do is done")
    assert launch.process_count(config) == 2


@pytest.fixture
def scontrol(environment, monkeypatch, tmp_path):
    """Puts this process into job 7, of which scontrol says what is given; `hostnames` answers as Slurm's does."""

    def say(job):
        environment(SLURM_JOB_ID="7")
        program = tmp_path / "scontrol"
        program.write_text(f'#!/bin/sh\ncase "$*" in *hostnames*) echo n1; echo n2 ;; *) echo "{job}" ;; esac\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.delenv("SLURM_STEP_ID", raising=False)

    return say


def test_a_job_is_what_slurm_says_also_where_it_leaves_out_the_cores(scontrol):
    scontrol("JobId=7 NodeList=n[1-2] NumTasks=4 CPUs/Task=N/A")
    job = allocation(run_config("n_nodes=2", "devices=2", "parallelism=mpi"))
    assert (job.number, job.nodes, job.tasks, job.cpus_per_task) == (7, ("n1", "n2"), 4, 1)
    scontrol("JobId=7 NodeList=n[1-2] NumTasks=4")
    assert allocation(run_config("n_nodes=2")).cpus_per_task == 1


def test_ranks_are_not_taken_for_the_one_that_starts_them(scontrol, monkeypatch):
    scontrol("JobId=7 NodeList=n[1-2] NumTasks=2 NodeAddr=127.0.0.1")
    for name in ("PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALRANKID", "RANK"):
        monkeypatch.setenv(name, "0")
    config = run_config("n_nodes=2", "parallelism=mpi")
    names = in_job._environment(config, allocation(config))
    assert names["WORLD_SIZE"] == "2"
    assert not processes.OWN & names.keys()


@pytest.mark.parametrize("missing", ["NodeList", "NumTasks"])
def test_what_slurm_does_not_say_of_a_job_is_named(scontrol, missing):
    fields = {"NodeList": "n[1-2]", "NumTasks": "2", "CPUs/Task": "4"}
    scontrol(" ".join(f"{key}={value}" for key, value in fields.items() if key != missing))
    with pytest.raises(MachineError, match=f"scontrol show job 7 has no {missing}"):
        allocation(run_config("n_nodes=2"))


def outside():
    """An address of this machine that others can reach."""
    address = network.own_address(network.OUTSIDE)
    if address is None or network.interface_of(address) is None:
        pytest.skip("this machine has no network, or does not tell of it")
    return address


@pytest.mark.parametrize(
    ("coordinator", "leads_to", "loopback"),
    [("OWN", None, False), ("192.0.2.7", None, False), ("127.0.0.1", None, True), ("node", "127.0.1.1", False)],
)
def test_torch_meets_the_other_nodes_by_an_interface_that_they_can_reach(
    environment, monkeypatch, coordinator, leads_to, loopback
):
    own = outside()
    environment(MASTER_ADDR=own if coordinator == "OWN" else coordinator)
    if leads_to:  # as on systems where a machine's own name is that of its loopback address

        class Socket(socket.socket):
            def connect(self, to):
                super().connect((leads_to if to[0] == coordinator else to[0], to[1]))

        monkeypatch.setattr(network.socket, "socket", Socket)
    launch.join(run_config("backend=fabric", "n_nodes=2"))
    assert os.environ[processes.GLOO] == network.interface_of("127.0.0.1" if loopback else own)


def test_the_interface_that_a_user_names_stays(environment, monkeypatch):
    environment(MASTER_ADDR="127.0.0.1")
    monkeypatch.setenv(processes.GLOO, "ib0")
    launch.join(run_config("backend=fabric", "n_nodes=2"))
    assert os.environ[processes.GLOO] == "ib0"


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
    # no Child, which forks: JAX warns of that where another test has started it here
    children = [subprocess.Popen(["sh", "-c", end]) for end in ends]
    for child in children:
        child.wait()
    assert wait(children, tmp_path / "failure.json", Stop()) == (3, -signal.SIGKILL)
