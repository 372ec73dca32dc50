import threading
import time

import pytest

from forgefield.data.prefetch import Prefetch, Timed


def test_items_come_in_order_and_only_a_few_are_made_ahead():
    made = []

    def items():
        for i in range(10):
            made.append(i)
            yield i

    with Prefetch(items(), depth=2) as ahead:
        assert next(ahead) == 0
        assert len(made) <= 5  # one taken, two ready, one waiting for room, one being made
        assert list(ahead) == list(range(1, 10))


def test_an_exception_reaches_the_caller_before_items_that_are_ready():
    failed = threading.Event()

    def items():
        yield 0
        yield 1
        failed.set()
        raise OSError("disk gone")

    with Prefetch(items(), depth=3) as ahead:
        failed.wait()
        ahead._thread.join()
        with pytest.raises(OSError, match="disk gone"):
            next(ahead)


def test_closing_early_ends_the_thread():
    ahead = Prefetch(iter(range(10**9)), depth=2)
    assert next(ahead) == 0
    ahead.close()
    ahead.close()
    assert not ahead._thread.is_alive()
    assert list(ahead) == []


def test_an_exception_of_the_caller_ends_the_thread():
    with pytest.raises(KeyError), Prefetch(iter(range(10**9))) as ahead:  # noqa: PT012
        next(ahead)
        raise KeyError
    assert not ahead._thread.is_alive()


def test_the_time_that_a_caller_waits_is_added_up_without_the_time_it_works():
    def items():
        for i in range(3):
            time.sleep(0.02)
            yield i

    timed, start = Timed(items()), time.perf_counter()
    for _ in timed:
        time.sleep(0.02)
    assert 0.06 <= timed.take() <= time.perf_counter() - start - 0.06
    assert timed.take() == 0
