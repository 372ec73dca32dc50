"""Work in a process of its own."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from typing import Any

from forgefield.errors import MachineError


def apart(function: Callable[..., None], *arguments: Any) -> None:
    """Call in a process of its own, which gives back its devices and their memory when it ends."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            pool.submit(function, *arguments).result()
        except SystemExit:  # at a signal
            for child in active_children():
                child.kill()
            raise
        except BrokenProcessPool:
            raise MachineError("a process of the preparation was killed; is there memory enough? Start again") from None
