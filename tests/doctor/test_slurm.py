"""The section `slurm` that the doctor proposes, from what sinfo prints on clusters of several kinds."""

import subprocess

import pytest
import yaml

from forgefield.config import load_config
from forgefield.doctor.slurm import propose, read_partitions, render
from forgefield.doctor.slurm_mpi import try_mpi

GPUS = """\
cpu*|up|3-00:00:00|120|48|192000|(null)
cpu*|down|3-00:00:00|2|48|192000|(null)
gpu|up|1-00:00:00|20|64|512000|gpu:a100:4(S:0-1)
test|up|30:00|1|64|512000+|gpu:a100:4
"""
CPUS = """\
short*|up|2:00:00|10|16|31000|(null)
"""


@pytest.mark.parametrize(
    ("table", "account", "section"),
    [
        (
            GPUS,
            "physics",
            {
                "account": "physics",
                "partition": "gpu",
                "cpu_partition": "cpu",
                "gpus": "a100",
                "cpus_per_device": 16,
                "mem_mb": 128000,
                "hours": 24.0,
            },
        ),
        (CPUS, None, {"partition": "short", "cpus_per_device": 4, "mem_mb": 8000, "hours": 2.0}),
        ("s*|up|1:10:00|1|16|31000|(null)\n", None, {"partition": "s", "hours": 1.16}),  # not 1.17, which is longer
        ("g*|up|infinite|1|8|60000|gpu:1\n", None, {"partition": "g", "gpus": True, "cpus_per_device": 8}),
        ("m*|up|infinite|1|14|60000|gpu:1g.5gb:7(S:0)\n", None, {"partition": "m", "gpus": "1g.5gb"}),
        ("r*|up|infinite|1|8|60000|gpu:rtx-6000:4\n", None, {"partition": "r", "gpus": True, "cpus_per_device": 2}),
    ],
)
def test_the_proposal_is_a_valid_section(table, account, section):
    content = yaml.safe_load(render(propose(list(read_partitions(table)), account)))
    assert content["slurm"] | section == content["slurm"]
    assert load_config(content).slurm.partition == section["partition"]


@pytest.mark.parametrize(
    ("ranks", "status", "detail"),
    [
        ("echo ranks 2; echo ranks 2", "ok", "srun --mpi=pmix starts ranks; 2 were tried"),
        ("echo ranks 1; echo ranks 1", "broken", "starts single processes"),
        ("echo 'srun: error: mpi/pmix: can not load PMIx library' >&2; exit 1", "broken", "can not load PMIx library"),
        ("echo 'srun: error: Unable to allocate resources: Busy' >&2; exit 1", "note", "untested: ended with code 1"),
        ("echo \"No module named 'mpi4py'\" >&2; exit 1", "note", "untested"),
    ],
)
def test_that_srun_lists_pmix_is_not_believed(add_program, ranks, status, detail):
    add_program("srun", f'case "$*" in *--mpi=list*) echo pmix >&2 ;; *--partition=cpu*) {ranks} ;; esac')
    found = try_mpi({"partition": "gpu", "cpu_partition": "cpu"})
    assert (found.status, detail in found.detail) == (status, True), found
    assert bool(found.remedy) == (status == "broken")


def test_srun_without_pmix_is_told(add_program):
    add_program("srun", "echo none")
    assert try_mpi({}).status == "missing"


def test_without_slurm_one_line_says_so(bare_environment, root):
    done = subprocess.run(
        [bare_environment / "python", "-c", "from forgefield.cli import main; main()", "doctor", "--slurm"],
        capture_output=True,
        text=True,
        env={"PATH": str(bare_environment), "PYTHONPATH": str(root / "src")},
    )
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: doctor --slurm: no sbatch, srun, squeue, scancel, scontrol, sinfo on the PATH"
    )
