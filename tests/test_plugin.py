"""What Snakemake's plugin for Slurm says and does when a job has failed."""

from types import SimpleNamespace

import pytest

from forgefield.launch.plugin import LINES, with_account


@pytest.fixture
def failed(tmp_path):
    """Reports a job that has failed, with a log of the stage and one of Slurm's; what is said, and the job after it."""

    def report(code, retries=5, aux=None):
        log, slurm = tmp_path / "stage.log", tmp_path / "7.log"
        log.write_text("".join(f"line {i}\n" for i in range(50)))
        slurm.write_text(f"Command 'set -euo pipefail; python' returned non-zero exit status {code}.\n")
        job = SimpleNamespace(log=[str(log)], restart_times=retries, attempt=1)
        said = []
        info = SimpleNamespace(job=job, aux={"slurm_logfile": slurm} if aux is None else aux)
        with_account(lambda executor, job_info, msg: said.append(msg))(None, info, "FAILED")
        return said[0], job

    return report


def test_the_end_of_the_stages_log_is_shown(failed):
    said, _ = failed(1)
    assert said.startswith("FAILED\n")
    shown = [line.strip() for line in said.splitlines() if line.startswith("    line ")]
    assert shown == [f"line {i}" for i in range(50 - LINES, 50)]


@pytest.mark.parametrize("code", [1, 3, 75, 137])
def test_what_is_no_mistake_is_tried_again(failed, code):
    said, job = failed(code)
    assert "not submitted again" not in said
    assert job.restart_times > job.attempt - 1  # Snakemake's own condition for another attempt


def test_a_mistake_of_the_users_is_not_tried_again(failed):
    said, job = failed(2)
    assert "not submitted again" in said
    assert not job.restart_times > job.attempt - 1


def test_a_job_that_was_not_even_submitted_has_no_log(failed):
    for aux in ({}, {"slurm_logfile": None}):
        said, job = failed(2, aux=aux)
        assert "not submitted again" not in said
        assert job.attempt == 1
