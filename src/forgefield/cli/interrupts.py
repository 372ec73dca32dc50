"""What signals do to a run: they ask a training to end, and end anything else with a line on where it stands."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Protocol

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
GRACE_SECONDS = 10.0  # more than the processes take that this one may have to end
AT_ONCE_SECONDS, POLL_SECONDS = 1.0, 0.1


class Asked(Protocol):
    """Work that may end by itself; see :class:`~forgefield.trainers.stopping.Stop`."""

    heeded: bool
    reason: str | None

    def ask(self, reason: str) -> None: ...


@contextmanager
def interruptible(
    standing: Callable[[], str], stop: Asked, *, speaks: bool = True, patient: bool = False
) -> Iterator[None]:
    """Ask work that heeds ``stop`` to end at a signal; at a second one, or where nothing heeds it, end the program.

    It ends by SystemExit, with the code that a shell gives it, and if it ``speaks`` with a line. One that is
    ``patient`` leaves its end to the process that has started it, by which signals may come twice.

    The main thread may be in a compilation or wait for another process, where Python handles no signal. So another
    thread hears of it first, says what there is to say, and ends the program if the main thread does not.
    """
    reads, writes = socket.socketpair()
    writes.setblocking(False)
    # each signal, and whether it ends the program; and those that the handler of another one has taken from there
    ends: SimpleQueue[tuple[int, bool]] = SimpleQueue()
    taken: set[int] = set()

    def watch() -> None:
        is_asked = False
        with reads:
            while number := reads.recv(1):
                name = signal.Signals(number[0]).name
                if (stop.heeded and not is_asked) or (patient and is_asked):
                    stop.ask("by a signal")
                    if not is_asked:
                        say(f"{name}: the training finishes its step and is saved; a second signal ends it at once")
                    is_asked = True
                    ends.put((number[0], False))
                    continue
                say(f"stopped by {name}; {standing()}")
                ends.put((number[0], True))
                time.sleep(AT_ONCE_SECONDS if is_asked else GRACE_SECONDS)
                os._exit(128 + number[0])

    def say(line: str) -> None:
        if speaks:
            with suppress(OSError):  # whoever reads this may have got the signal, too
                print(line, file=sys.stderr, flush=True)

    def leave(number: int, frame: FrameType | None) -> None:
        deadline = time.monotonic() + GRACE_SECONDS
        # several signals may have come before this is called once, or while it waits
        while time.monotonic() < deadline and (number not in taken or not ends.empty()):
            with suppress(Empty):
                heard, is_end = ends.get(timeout=POLL_SECONDS)
                if is_end:
                    raise SystemExit(128 + heard)
                taken.add(heard)
        taken.discard(number)

    threading.Thread(target=watch, daemon=True).start()
    before = {number: signal.signal(number, leave) for number in SIGNALS}
    wakeup = signal.set_wakeup_fd(writes.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        writes.close()
