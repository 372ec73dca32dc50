"""A function of many items, computed by several processes in bounded memory."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from forgefield.errors import MachineError

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2  # items per process that are computed before they are asked for


def in_order(function: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """``map(function, items)``, by that many processes, if more than one.

    Raises:
        MachineError: one of them was killed.
    """
    if jobs <= 1:
        yield from map(function, items)
        return
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _end_with_parent)
    pending = deque()
    try:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > AHEAD * jobs:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool:
        raise MachineError("a process that reads was killed; is there memory enough? Start again") from None
    finally:
        pool.shutdown(cancel_futures=True)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_with_parent() -> None:
    """Leave Ctrl-C to the process that was started by hand, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
