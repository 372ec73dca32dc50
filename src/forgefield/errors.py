"""The ways a command can end before its work is done, each with its line and exit code."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake in the input or the configuration: one line that names it and the way out; exit code 2."""

    exit_code = 2


class FrameError(UserError):
    """A mistake in one frame, of which only the number in its source is known.

    Attributes:
        frame: that number.
        problem: what is wrong with the frame.
    """

    def __init__(self, frame: int, problem: str) -> None:
        super().__init__(frame, problem)
        self.frame, self.problem = frame, problem

    def __str__(self) -> str:
        return f"frame {self.frame}: {self.problem}"


class MachineError(Exception):
    """A fault of the machine, such as a full disk or a lost process; exit code 3."""

    exit_code = 3


class StoppedError(Exception):
    """A training that was asked to end and is saved; the same command continues it; exit code 75, EX_TEMPFAIL."""

    exit_code = 75


@contextmanager
def named(where: object) -> Iterator[None]:
    """Put ``where`` before the message of a :class:`UserError` that knows of no file."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


# a path that the user chose cannot be used; any other fault of the file system is the machine's
PATH_ERRORS = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG}


def of_file(error: OSError) -> tuple[str, int]:
    """The line and exit code of an error that names a file."""
    code = UserError.exit_code if error.errno in PATH_ERRORS else MachineError.exit_code
    return f"{error.filename}: {error.strerror or error}; choose another path or make room there", code


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turn the errors of this file, or of a file that cannot be used, into one line and exit code.

    A fault of the operating system that names no file, such as a broken pipe, rises: no other path would mend it.
    """
    try:
        yield
    except StoppedError as stopped:
        print(stopped, file=sys.stderr)
        raise SystemExit(stopped.exit_code) from None
    except (UserError, MachineError) as error:
        line, code = str(error), error.exit_code
    except OSError as error:
        if error.filename is None:
            raise
        line, code = of_file(error)
    else:
        return
    print(f"error: {' '.join(line.split())}", file=sys.stderr)
    raise SystemExit(code)
