"""A function of many items, computed by several processes in bounded memory."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from forgefield.errors import MachineError

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2  # items that each other process has before it
HELD = 6  # items for each process, done or not, that are in memory


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], processes: int
) -> Iterator[tuple[Item, Result]]:
    """Each item with ``function(item)``, by so many processes, of which this one is the first.

    The others take a second to start; until then, and while they have enough to do, this one computes items itself.

    Raises:
        MachineError: one of them was killed.
    """
    if processes <= 1:
        for item in items:
            yield item, function(item)
        return
    others = processes - 1
    pool = ProcessPoolExecutor(others, multiprocessing.get_context("spawn"), _end_with_parent)
    pending: deque[tuple[Item, Future[Result]]] = deque()
    try:
        started = [pool.submit(_started) for _ in range(others)]
        for item in items:
            is_here = not _any_done(started) or _unfinished(pending) >= AHEAD * others
            pending.append((item, _done(function(item)) if is_here else pool.submit(function, item)))
            while pending and (pending[0][1].done() or len(pending) > HELD * processes):
                yield _first(pending)
        while pending:
            yield _first(pending)
    except BrokenProcessPool:
        raise MachineError("a process that reads was killed; is there memory enough? Start again") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _any_done(futures: Iterable[Future]) -> bool:
    return any(future.done() for future in futures)


def _unfinished(pending: Iterable[tuple[Item, Future]]) -> int:
    return sum(not future.done() for _, future in pending)


def _first(pending: deque[tuple[Item, Future]]) -> tuple[Item, Result]:
    item, future = pending.popleft()
    return item, future.result()


def _done(result: Result) -> Future[Result]:
    future = Future()
    future.set_result(result)
    return future


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _started() -> None:
    """To have been called, a process has to have imported this package, which is what takes it long."""


def _end_with_parent() -> None:
    """Leave Ctrl-C to the process that was started by hand, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
