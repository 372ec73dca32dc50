"""Which checks are running, while the report is still to come."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


class RunningChecks:
    """Names the running checks in a status line on a terminal; elsewhere prints a line as each starts.

    Use as a context manager around the checks, which may run in several threads.

    Args:
        console: Where to show them; stderr if None.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._status = self._console.status("") if self._console.is_terminal else None
        self._names: list[str] = []

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        """Show ``name`` as long as the block runs."""
        self._names.append(name)
        if self._status is None:
            self._console.print(f"checking {name}", highlight=False, soft_wrap=True)
        self._update()
        yield
        self._names.remove(name)
        self._update()

    def _update(self) -> None:
        if self._status is not None:
            self._status.update(f"checking {', '.join(self._names)}")

    def __enter__(self) -> "RunningChecks":
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._status is not None:
            self._status.stop()
