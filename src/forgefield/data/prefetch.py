"""Preparing the next items in a background thread while the caller works on the present one."""

import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from threading import Condition, Thread
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Timed(Iterator[Item]):
    """Iterate over ``items``, and tell how long the caller has waited for them."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items, self._seconds = items, 0.0

    def __next__(self) -> Item:
        start = time.perf_counter()
        try:
            return next(self._items)
        finally:
            self._seconds += time.perf_counter() - start

    def take(self) -> float:
        """The seconds since this was last called."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds


class Prefetch(Generic[Item]):
    """Iterate over ``items`` with up to ``depth`` of them made ahead. Use as a context manager, or call ``close``.

    An exception in the background reaches the caller at its next request, ahead of items that are ready.
    """

    def __init__(self, items: Iterable[Item], depth: int = 2) -> None:
        self._items, self._depth = items, depth
        self._ready: deque[Item] = deque()
        self._change = Condition()
        self._error: BaseException | None = None
        self._finished = self._closed = False
        self._thread = Thread(target=self._work, name="forgefield-prefetch", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            for item in self._items:
                with self._change:
                    self._change.wait_for(lambda: len(self._ready) < self._depth or self._closed)
                    if self._closed:
                        return
                    self._ready.append(item)
                    self._change.notify_all()
        except BaseException as error:  # handed over, whatever it is, and raised in the caller's thread
            self._error = error
        finally:
            if isinstance(self._items, Generator):
                self._items.close()  # what it holds open is closed where it was opened
            with self._change:
                self._finished = True
                self._change.notify_all()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        with self._change:
            self._change.wait_for(lambda: self._ready or self._finished or self._closed)
            if self._error is not None:
                raise self._error
            if self._closed or not self._ready:
                raise StopIteration
            item = self._ready.popleft()
            self._change.notify_all()
            return item

    def close(self) -> None:
        """Stop the background thread after the item it is at. Safe to call more than once."""
        with self._change:
            self._closed = True
            self._ready.clear()
            self._change.notify_all()
        self._thread.join(timeout=10)

    def __enter__(self) -> "Prefetch[Item]":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
