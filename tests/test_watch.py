"""Jobs of Slurm for which Snakemake would wait for ever."""

import asyncio
from types import SimpleNamespace

import pytest

from forgefield.launch import watch
from forgefield.launch.watch import LOST, PATIENCE, Watch, states_of, with_watch


class Cluster:
    """The time, and what Slurm says of jobs."""

    def __init__(self):
        self.time, self.states = 0.0, {}
        self.watch = Watch(lambda: self.time)

    def ended(self, jobs, after, **states):
        self.time += after
        return self.watch.ended(jobs, lambda: {name.removeprefix("job_"): state for name, state in states.items()})


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))  # no sacct, which would be asked
    return Cluster()


@pytest.fixture
def executor():
    """What of the plugin's executor matters here, which has jobs 7 and 8."""
    failed = []

    async def all_of(executor, jobs):
        executor._status_query_calls += 1
        executor._failed_nodes.add("n[1-2]")
        for job in jobs:
            yield job

    def waiting(check):
        checked = with_watch(check)

        async def ask():
            names = SimpleNamespace(name="train")
            jobs = [SimpleNamespace(external_jobid=number, job=names) for number in ("7", "8")]
            return [job.external_jobid async for job in checked(made, jobs)]

        return lambda: asyncio.run(ask())

    made = SimpleNamespace(
        workflow=SimpleNamespace(executor_settings=SimpleNamespace(init_seconds_before_status_checks=20)),
        next_seconds_between_status_checks=180,
        _status_query_calls=0,
        _failed_nodes={"n7"},
        report_job_error=lambda job, msg: failed.append((job.external_jobid, msg)),
        failed=failed,
        all_of=all_of,
        waiting=waiting,
    )
    return made


@pytest.mark.parametrize("state", ["PREEMPTED", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "SPECIAL_EXIT"])
def test_a_job_that_stays_over_is_reported(cluster, state):
    assert cluster.ended(["7", "8"], 0, job_7=state, job_8="RUNNING") == {}
    assert cluster.ended(["7", "8"], PATIENCE, job_7=state, job_8="RUNNING") == {"7": state}


def test_a_job_that_is_queued_again_is_waited_for(cluster):
    assert cluster.ended(["7"], 0, job_7="PREEMPTED") == {}
    assert cluster.ended(["7"], PATIENCE, job_7="PENDING") == {}
    assert cluster.ended(["7"], PATIENCE, job_7="PREEMPTED") == {}


def test_a_job_that_slurm_has_forgotten_is_reported(cluster):
    assert cluster.ended(["7"], 0) == {}
    assert cluster.ended(["7"], PATIENCE) == {"7": LOST}


@pytest.mark.parametrize(
    ("recorded", "found"), [("RUNNING", {}), ("COMPLETED", {"7": "COMPLETED"}), ("CANCELLED by 5", {"7": "CANCELLED"})]
)
def test_the_accounts_say_what_became_of_a_job_that_slurm_has_forgotten(cluster, tmp_path, recorded, found):
    program = tmp_path / "sacct"
    program.write_text(f"#!/bin/sh\necho '7|{recorded}'\n")
    program.chmod(0o755)
    assert cluster.ended(["7"], 0) == {}
    assert cluster.ended(["7"], PATIENCE) == found


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("7|PENDING|Resources", "PENDING"),
        ("7|PENDING|JobHeldUser", "PENDING"),
        ("7|PENDING|launch failed requeued held", "SPECIAL_EXIT"),
        ("7|PENDING|launch_failed_requeued_held", "SPECIAL_EXIT"),
        ("7|PENDING|JobHoldMaxRequeue", "SPECIAL_EXIT"),
        ("7|RUNNING|None", "RUNNING"),
    ],
)
def test_a_job_that_only_an_administrator_can_let_go_is_over(cluster, tmp_path, line, state):
    program = tmp_path / "squeue"
    program.write_text(f"#!/bin/sh\necho '{line}'\n")
    program.chmod(0o755)
    assert states_of() == {"7": state}


@pytest.mark.parametrize(
    ("reason", "key"),
    [
        ("PartitionConfig", "slurm.cpus_per_device"),
        ("BadConstraints", "constraint"),
        ("PartitionTimeLimit", "slurm.hours"),
        ("AssocMaxWallDurationPerJobLimit", "slurm.hours"),
        ("QOSMaxNodePerJob", "n_nodes"),
        ("QOSMaxCpuPerJobLimit", "slurm.cpus_per_device"),
        ("QOSMaxMemoryPerJob", "slurm.mem_mb"),
        ("AssocMaxGRESPerJob", "devices"),
        ("InvalidAccount", "slurm.account"),
        ("InvalidQOS", "slurm.qos"),
        ("DependencyNeverSatisfied", "slurm_extra"),
    ],
)
def test_a_job_that_can_never_start_is_reported_with_what_to_change(cluster, reason, key):
    state = watch._state("PENDING", reason)
    assert cluster.ended(["7"], 0, job_7=state) == {}
    assert cluster.ended(["7"], PATIENCE, job_7=state) == {"7": state}
    said = watch._account("7", state, "train")
    assert said.startswith(f"error: Slurm's job 7 waits for ever: {reason}; change ")
    assert key in said


@pytest.mark.parametrize(
    "reason",
    [
        *("Resources", "Priority", "BeginTime", "Dependency", "JobHeldUser", "PartitionDown", "PartitionNodeLimit"),
        *("ReqNodeNotAvail, UnavailableNodes:n1", "AssocMaxJobsLimit", "QOSMaxCpuPerUserLimit", "AssocGrpCpuLimit"),
    ],
)
def test_a_job_that_may_start_by_itself_is_waited_for(reason):
    assert watch._state("PENDING", reason) == "PENDING"


@pytest.mark.parametrize("reason", ["PartitionTimeLimit", "PartitionConfig", "BadConstraints"])
def test_a_job_that_another_partition_may_start_is_waited_for(reason):
    assert watch._state("PENDING", reason, "short,long") == "PENDING"
    assert watch._state("PENDING", reason, "short") != "PENDING"


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("PartitionTimeLimit", "--set-resources convert:runtime=MINUTES"),
        ("QOSMaxMemoryPerJob", "--set-resources convert:mem_mb=MB"),
        ("InvalidQOS", "slurm.qos"),
    ],
)
def test_stages_that_the_keys_do_not_reach_have_advice_of_their_own(reason, advice):
    said = watch._account("7", watch._state("PENDING", reason), "convert")
    assert advice in said
    assert "slurm.hours" not in said


@pytest.mark.parametrize(("after", "reported"), [("CANCELLED|None", ["7"]), ("RUNNING|None", [])])
def test_a_job_that_has_just_started_is_not_ended(cluster, tmp_path, monkeypatch, executor, after, reported):
    monkeypatch.setattr(watch, "Watch", lambda: cluster.watch)
    (tmp_path / "state").write_text("7|PENDING|PartitionConfig|gpu\n")
    squeue, scancel = "cat state; echo '8|RUNNING|None|gpu'", f"echo $* > asked; echo '7|{after}|gpu' > state"
    for name, script in {"squeue": squeue, "scancel": scancel}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\ncd {tmp_path}\n{script}\n")
        (tmp_path / name).chmod(0o755)
    check = executor.waiting(executor.all_of)
    assert check() == ["7", "8"]
    cluster.time += PATIENCE
    assert check() == [number for number in ("7", "8") if number not in reported]
    assert (tmp_path / "asked").read_text() == "--state=PENDING 7\n"
    assert [number for number, _ in executor.failed] == reported


def test_the_plugin_does_not_forget_jobs_while_slurm_does_not_answer(executor, monkeypatch):
    monkeypatch.setattr(watch, "states_of", lambda: None)

    async def none_of(executor, jobs):
        for job in []:
            yield job

    assert executor.waiting(none_of)() == ["7", "8"]

    async def all_ended(executor, jobs):
        executor._status_query_calls += 1
        for job in []:
            yield job

    assert executor.waiting(all_ended)() == []


def test_nothing_is_said_of_jobs_while_slurm_does_not_answer(cluster):
    assert cluster.ended(["7"], 0) == {}
    cluster.time += PATIENCE
    assert cluster.watch.ended(["7"], lambda: None) == {}


def test_the_plugin_reports_what_is_over_and_waits_for_the_rest(cluster, executor, monkeypatch):
    monkeypatch.setattr(watch, "Watch", lambda: cluster.watch)
    monkeypatch.setattr(watch, "states_of", lambda: {"7": "PREEMPTED", "8": "RUNNING"})
    waiting = executor.waiting(executor.all_of)
    monkeypatch.setattr(watch.subprocess, "run", lambda *words, **settings: None)
    assert waiting() == ["7", "8"]
    cluster.time += PATIENCE
    assert waiting() == ["8"]
    assert executor.failed == [("7", "Slurm's job 7 is over: PREEMPTED")]
    assert executor.next_seconds_between_status_checks == 60
    assert executor._failed_nodes == {"n7"}


def test_a_plugin_that_is_not_ready_is_left_alone_without_jobs():
    asked = []

    async def none_of(executor, jobs):
        asked.append(jobs)
        for job in jobs:
            yield job

    async def waiting():
        return [job async for job in with_watch(none_of)(SimpleNamespace(), [])]

    assert asyncio.run(waiting()) == []
    assert asked == [[]]
