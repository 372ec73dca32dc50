"""What Snakemake's plugin for Slurm says and does when a job has failed."""

import errno
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from forgefield.launch.attempts import Progress
from forgefield.launch.plugin import GOES_ON, LINES, NO_MORE, with_account, with_given, with_progress

REJECTED = "SLURM sbatch failed. The error message was '{}'.\n    sbatch call:\n        sbatch --wrap='invalid'\n"


@dataclass(eq=False)
class Job:
    """What of Snakemake's jobs matters here."""

    log: list[str]
    output: list[str]
    restart_times: int
    attempt: int = 1

    @property
    def comes_again(self):
        """Snakemake's own condition for another attempt."""
        return self.restart_times > self.attempt - 1


@pytest.fixture
def failed(tmp_path):
    """Submits and reports a job that has failed, with logs; what is said, and the job after it."""
    log, slurm, run = tmp_path / "stage.log", tmp_path / "7.log", tmp_path / "run"
    progress = Progress()

    def report(code, retries=5, aux=None, message="FAILED", before=(), saved=(), written=True, attempt=1):
        log.write_text("".join(f"line {i}\n" for i in range(50)) if written else "")
        slurm.write_text(f"Command 'set -euo pipefail; python' returned non-zero exit status {code}.\n")
        job = Job([str(log)], [str(run / "history.csv")], retries, attempt)
        save(run, before)
        with_progress(lambda executor, job: save(run, saved), progress)(None, job)
        said = []
        info = SimpleNamespace(job=job, aux={"slurm_logfile": slurm} if aux is None else aux)
        with_account(lambda executor, job_info, msg: said.append(msg), progress)(None, info, message)
        return said[0], job

    return report


def save(run, names):
    for name in names:
        folder = run / "checkpoints" / name
        folder.mkdir(parents=True)
        (folder / "complete.json").touch()


def test_the_end_of_the_stages_log_is_shown(failed):
    said, _ = failed(1)
    assert said.startswith("FAILED\n")
    shown = [line.strip() for line in said.splitlines() if line.startswith("    line ")]
    assert shown == [f"line {i}" for i in range(50 - LINES, 50)]


def test_an_empty_log_has_no_end(failed):
    assert failed(1, written=False)[0] == "FAILED\n"


@pytest.mark.parametrize("code", [1, 3, 75, 137])
def test_what_is_no_mistake_is_tried_again(failed, code):
    said, job = failed(code)
    assert NO_MORE not in said
    assert GOES_ON not in said
    assert (job.comes_again, job.attempt) == (True, 1)


def test_a_mistake_of_the_users_is_not_tried_again(failed):
    said, job = failed(2)
    assert NO_MORE in said
    assert not job.comes_again


@pytest.mark.parametrize(
    ("words", "again"),
    [
        ("Batch job submission failed: Invalid account or account/partition combination specified", False),
        ("Batch job submission failed: Requested node configuration is not available", False),
        ("Batch job submission failed: User's group not permitted to use this partition", False),
        ("Batch job submission failed: Socket timed out on send/recv operation", True),
        ("Batch job submission failed: Unable to contact slurm controller (connect failure)", True),
        ("Batch job submission failed: Job violates accounting/QOS policy (job submit limit)", True),
    ],
)
def test_what_sbatch_rejects_for_good_is_not_submitted_again(failed, words, again):
    for aux in ({}, {"slurm_logfile": None}):
        said, job = failed(2, aux=aux, message=REJECTED.format(f"sbatch: error: {words}"))
        assert job.comes_again is again
        assert (NO_MORE in said) is not again


@pytest.mark.parametrize(("given", "named"), [(None, [""]), ("mine", [" -A mine"])])
def test_only_an_account_that_the_user_gives_is_named(given, named):
    job = SimpleNamespace(resources={"slurm_account": given})
    account = with_given(lambda executor, job: iter([" -A " + (given or "of-the-last-job")]))
    assert list(account(None, job)) == named


def test_a_job_that_can_never_start_is_not_submitted_again(failed):
    _, job = failed(1, message="error: Slurm's job 7 waits for ever: PartitionConfig; change n_nodes")
    assert not job.comes_again


def test_a_training_that_got_further_uses_no_retry(failed):
    said, job = failed(75, before=["epoch_000003"], saved=["epoch_000003_step_000002"], attempt=6)
    assert GOES_ON in said
    assert (job.comes_again, job.attempt) == (True, 5)  # to which Snakemake adds one


@pytest.mark.parametrize(
    ("code", "message", "further"),
    [
        (3, "FAILED", True),
        (137, "SLURM status is: 'TIMEOUT'", True),
        (137, "Slurm's job 7 is over: PREEMPTED", True),
        (1, "FAILED", False),
        (3, "SLURM status is: 'OUT_OF_MEMORY'", False),
    ],
)
def test_what_fails_by_itself_after_it_got_further_uses_one(failed, code, message, further):
    said, job = failed(code, saved=["epoch_000001"], message=message)
    assert (GOES_ON in said) is further
    assert job.attempt == 1 - further


def test_files_that_cannot_be_read_do_not_end_snakemake(monkeypatch, tmp_path):
    def stale(path, *words, **settings):
        raise OSError(errno.ESTALE, "Stale file handle", str(path))

    job = Job([str(tmp_path / "stage.log")], [str(tmp_path / "history.csv")], 5)
    monkeypatch.setattr("pathlib.Path.read_text", stale)
    monkeypatch.setattr("pathlib.Path.glob", stale)
    said = []
    progress = Progress()
    with_progress(lambda executor, job: None, progress)(None, job)
    info = SimpleNamespace(job=job, aux={"slurm_logfile": tmp_path / "7.log"})
    with_account(lambda executor, job_info, msg: said.append(msg), progress)(None, info, "FAILED")
    assert said == ["FAILED\n"]
    assert job.comes_again


def test_a_training_that_saved_nothing_new_uses_one(failed):
    said, job = failed(75, before=["epoch_000003"], attempt=6)
    assert GOES_ON not in said
    assert (job.comes_again, job.attempt) == (False, 6)


@pytest.mark.parametrize("why", [{"retries": 0}, {"message": "SLURM status is: 'CANCELLED'"}, {"code": 2}])
def test_who_wants_no_retry_or_cancels_a_job_has_no_other_one_for_it(failed, why):
    said, job = failed(**({"code": 75, "saved": ["epoch_000001"]} | why))
    assert GOES_ON not in said
    assert job.attempt in (1, job.restart_times + 1)
