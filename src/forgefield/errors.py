"""The two ways a command can fail, and how each one ends."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake in the input or the configuration: one line that names it and the way out; exit code 2."""

    exit_code = 2


class MachineError(Exception):
    """A fault of the machine, such as a full disk or a lost process; exit code 3."""

    exit_code = 3


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turn a :class:`UserError` or :class:`MachineError` into one line on stderr and its exit code."""
    try:
        yield
    except (UserError, MachineError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
