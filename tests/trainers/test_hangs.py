"""Who is named where processes wait for one another; `tests/faults` halts real ones."""

import threading
import time

import pytest

from forgefield.trainers.hangs import HangWatch
from forgefield.trainers.stopping import Stop

LIMIT = 1.0


class Names:
    """The processes of a training, one thread for each."""

    def __init__(self, index):
        self.index, self.count = index, 3

    def exchange(self, item):
        return ["process 10 on a", "process 11 on a", "process 12 on b"]


@pytest.fixture
def watches(tmp_path):
    """What the watches of three processes look at, and what they ended with."""
    stops, messages = [Stop() for _ in range(3)], []
    made = [HangWatch(tmp_path / ".hangs", Names(i), stops[i], LIMIT, messages.append) for i in range(3)]
    return made, stops, messages


def wait_for(messages):
    deadline = time.monotonic() + 5 * LIMIT
    while not messages:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return messages[0]


def test_one_that_answers_nothing_is_named(watches):
    made, _, messages = watches
    with made[0], made[1]:
        assert wait_for(messages).startswith("rank 2 (process 12 on b) gave no sign of life for 1 s")


def test_one_that_waits_for_its_batch_is_named(watches):
    made, stops, messages = watches
    with made[0], made[1], made[2]:
        for i in (0, 0, 1, 1, 2):
            assert not stops[i].asked
        assert wait_for(messages).startswith("rank 2 (process 12 on b) waits for data")


def test_nothing_is_ended_while_one_is_at_work(watches, tmp_path):
    made, stops, messages = watches
    over = threading.Event()
    with made[0], made[1], made[2]:
        while time.monotonic() < made[0].start + 2.5 * LIMIT:
            assert not stops[1].asked
            over.wait(0.05)
        assert (tmp_path / ".hangs").is_dir()
    assert messages == []
    assert not (tmp_path / ".hangs").exists()


def test_a_training_that_goes_on_writes_nothing(watches, tmp_path):
    made, stops, messages = watches
    with made[0], made[1], made[2]:
        for _ in range(40):
            for stop in stops:
                assert not stop.asked
            time.sleep(0.05)
            assert not (tmp_path / ".hangs").exists()
    assert messages == []
