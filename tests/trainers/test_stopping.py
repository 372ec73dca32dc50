import time

import pytest

from forgefield.trainers.stopping import Stop, end_of_job


def test_is_asked_when_there_is_just_time_enough():
    stop = Stop()
    stop.limit(time.time() + 100, "before the first end")
    stop.limit(time.time() + 200, "before the second")
    assert not stop.asked
    stop.needed = 101
    assert stop.asked
    assert stop.reason == "before the first end"


def test_keeps_the_first_reason():
    stop = Stop()
    stop.ask("by a signal")
    stop.limit(0.0, "too late")
    stop.ask("again")
    assert stop.asked
    assert stop.reason == "by a signal"


@pytest.mark.parametrize(
    ("shown", "end"),
    [
        ("JobId=7 JobName=a b StartTime=2026-01-01T10:00:00 EndTime=2026-01-01T12:00:00 Deadline=N/A", (12, 0)),
        ("JobId=7 EndTime=Unknown", None),
        ("", None),
    ],
)
def test_the_end_of_a_slurm_job(tmp_path, monkeypatch, shown, end):
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert end_of_job() is None
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    program = tmp_path / "scontrol"
    program.write_text(f'#!/bin/sh\n[ "$*" = "show job --oneliner 7" ] && echo "{shown}"\n')
    program.chmod(0o755)
    found = end_of_job()
    assert (found and time.localtime(found)[3:5]) == end
    monkeypatch.setenv("SLURM_JOB_END_TIME", "1500.0")
    assert end_of_job() == 1500.0
