"""What SIGINT and SIGTERM do to a run: one line that says where it stands, and its end."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE_SECONDS = 10.0  # more than the processes take that this one may have to end


@contextmanager
def interruptible(standing: Callable[[], str], speaks: bool) -> Iterator[None]:
    """End the program at a signal by SystemExit, with the code that a shell gives it, and if it ``speaks`` with a line.

    The main thread may be in a compilation or wait for another process, where Python handles no signal. So another
    thread hears of it first, says what there is to say, and ends the program if the main thread does not.
    """
    reads, writes = socket.socketpair()
    writes.setblocking(False)
    said = threading.Event()

    def watch() -> None:
        with reads:
            number = reads.recv(1)
        if not number:
            return
        if speaks:
            print(f"stopped by {signal.Signals(number[0]).name}; {standing()}", file=sys.stderr, flush=True)
        said.set()
        time.sleep(GRACE_SECONDS)
        os._exit(128 + number[0])

    def leave(number: int, frame: FrameType | None) -> None:
        said.wait(GRACE_SECONDS)
        raise SystemExit(128 + number)

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
