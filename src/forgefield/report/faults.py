"""What is wrong with one of several runs: it ends the report, or the report does without and says so."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from forgefield.errors import UserError


class Faults:
    """The faults that were found.

    Args:
        tolerated: whether the report goes on.

    Attributes:
        lines: what was said.
    """

    def __init__(self, *, tolerated: bool = False) -> None:
        self._tolerated = tolerated
        self.lines: list[str] = []

    @contextmanager
    def leaving_out(self, what: str) -> Iterator[None]:
        """Where ``what`` is at fault, leave the rest of the block out and say so, here and on stderr.

        Raises:
            UserError, OSError: what is wrong, where faults are not tolerated.
        """
        try:
            yield
        except (UserError, OSError) as error:
            if not self._tolerated:
                raise
            self.say(f"left out: {what}: {error}")

    def say(self, line: str) -> None:
        """Say something here and on stderr, once."""
        if line not in self.lines:
            self.lines.append(line)
            print(f"warning: {line}", file=sys.stderr)
