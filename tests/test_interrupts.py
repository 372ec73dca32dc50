"""What a program does at signals, as the program that this file is, too."""

import signal
import subprocess
import sys
import time

import pytest

ENDS_AT_ONCE = 5.0


def program(heeds, patient):
    from contextlib import nullcontext

    from forgefield.cli.interrupts import interruptible
    from forgefield.trainers.stopping import Stop

    stop = Stop()
    with interruptible(lambda: "here", stop, patient=patient), stop.watched() if heeds else nullcontext():
        print("ready", flush=True)
        while not stop.asked:
            time.sleep(0.01)
        print("asked", flush=True)
        time.sleep(60)


@pytest.fixture
def started():
    """A function that starts the program."""
    processes = []

    def start(*words):
        process = subprocess.Popen(
            [sys.executable, __file__, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_work_is_asked_first_and_ended_at_the_second_signal(started, number):
    process = started("heeds")
    process.send_signal(number)
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGTERM)
    begin = time.monotonic()
    assert process.wait() == 128 + signal.SIGTERM
    assert time.monotonic() - begin < ENDS_AT_ONCE
    assert process.stderr.read() == (
        f"{number.name}: the training finishes its step and is saved; a second signal ends it at once\n"
        "stopped by SIGTERM; here\n"
    )


def test_a_process_with_a_parent_leaves_the_second_signal_to_it(started):
    process = started("heeds", "patient")
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "asked\n"
    time.sleep(1.5)
    assert process.poll() is None


def test_what_cannot_be_asked_is_ended(started):
    process = started()
    process.send_signal(signal.SIGINT)
    assert process.wait() == 128 + signal.SIGINT
    assert process.stderr.read() == "stopped by SIGINT; here\n"


if __name__ == "__main__":
    program(heeds="heeds" in sys.argv, patient="patient" in sys.argv)
