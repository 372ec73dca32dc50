"""Jobs that users submit themselves, and what the doctor says about the cluster."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FORGEFIELD = str(Path(sys.executable).parent / "forgefield")
NODES = ["--set", "n_nodes=2"]


def train(clone, *words, launcher):
    command = [*launcher, FORGEFIELD, "train", *words]
    return subprocess.run(command, cwd=clone.path, env=clone.environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def clone(prepared, clone_of):
    return clone_of(prepared, runs={"own": {}})


def test_a_job_that_is_too_small_is_refused_with_what_to_write(clone):
    allocate = ["salloc", "--nodes=1", "--ntasks=1", "--mem=2000", "--time=5", "--quiet"]
    done = train(clone, *NODES, launcher=allocate)
    assert done.returncode == 2
    *_, error = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "has 1 on 1 nodes; submit it with --nodes 2 --ntasks-per-node 1, or write n_nodes=1" in error


def test_a_step_of_one_task_starts_no_other_nodes(clone):
    job = ["--nodes=2", "--ntasks=2", "--mem=2000", "--time=5"]
    done = train(clone, *NODES, launcher=["salloc", "--quiet", *job, "srun", "--nodes=1", "--ntasks=1"])
    assert done.returncode == 2
    assert "error: n_nodes: 2 nodes are asked for, but this is one process; start it by `srun" in done.stderr


def test_single_processes_instead_of_ranks_are_found_out(clone):
    job = ["--nodes=2", "--ntasks=2", "--mem=4000", "--time=5"]
    words = [*NODES, "--set", "parallelism=mpi"]
    done = train(clone, *words, launcher=["salloc", "--quiet", *job, "srun", "--mpi=none", "--kill-on-bad-exit"])
    assert done.returncode != 0
    assert "does not know this MPI's PMIx; write slurm.launcher: mpirun" in done.stderr


def test_the_doctor_knows_the_cluster_and_proposes_what_slurm_accepts(clone):
    done = subprocess.run(
        [FORGEFIELD, "doctor", "--slurm"], capture_output=True, text=True, timeout=300, cwd=clone.path
    )
    assert done.returncode == 0, done.stderr
    assert "Slurm would accept a job with the section below" in done.stdout
    assert "srun --mpi=pmix starts ranks; 2 were tried" in done.stdout
    assert "\nslurm:\n" in done.stdout


def test_the_doctor_tells_programs_the_same(clone):
    command = [FORGEFIELD, "doctor", "--slurm", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=clone.path)
    content = json.loads(done.stdout)
    assert {finding["section"] for finding in content["findings"]} == {"slurm"}
    assert content["slurm"]["partition"] in ("debug", "high")
