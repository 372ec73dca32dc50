"""What a process that fails leaves behind for the one that has started it, and what that one makes of it."""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from forgefield.errors import MachineError, StoppedError, UserError, of_file
from forgefield.launch.processes import FAILURE, RANK_LOGS, is_first, rank, started
from forgefield.launch.rank_logs import last_lines
from forgefield.trainers.stopping import Stop

GRACE_SECONDS = 5.0
# of a process that was asked to stop before it trained
ENDED_BY_ASKING = (-signal.SIGUSR1, 128 + signal.SIGUSR1)


@contextmanager
def ended_together() -> Iterator[None]:
    """Where anything fails, leave the message for the process that waits, and end at once, so that all are ended."""
    try:
        yield
    except (UserError, MachineError, StoppedError) as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGINT)
    except SystemExit as error:  # at a signal
        os._exit(error.code if isinstance(error.code, int) else 1)
    except OSError as error:
        _fail(*(_unknown(error) if error.filename is None else of_file(error)))
    except BaseException as error:  # whatever it is, the others must not wait for this process
        _fail(*_unknown(error))


def _unknown(error: BaseException) -> tuple[str, int, str]:
    """Message, exit code and where it came from, of what may be a mistake of the program."""
    return f"{type(error).__name__}: {error}", 1, traceback.format_exc()


def end_all(message: str) -> NoReturn:
    """End this process from any thread, and so all others, for a fault of the machine."""
    _fail(f"{message}; run again: it continues from the last checkpoint", MachineError.exit_code)


def _fail(message: str, code: int, trace: str = "") -> NoReturn:
    line, path = " ".join(message.split()), os.environ.get(FAILURE)
    sys.stdout.flush()
    if path is None:
        if code != StoppedError.exit_code:
            print(f"{trace}error: {line}", file=sys.stderr, flush=True)
        elif is_first():  # which all others would repeat
            print(line, file=sys.stderr, flush=True)
    else:
        # numbers of processes are the same on several nodes
        own = Path(f"{path}.{rank()}.{os.getpid()}")
        if code not in (UserError.exit_code, StoppedError.exit_code) and RANK_LOGS in os.environ:
            print(trace, file=sys.stderr, flush=True)
            trace = f"{last_lines(Path(os.environ[RANK_LOGS]), rank(), started())}\n"
        try:
            own.write_text(json.dumps({"message": line, "code": code, "trace": trace}))
            # the first one is the cause, others may follow from it
            with suppress(FileExistsError):
                os.link(own, path)
        except OSError:  # a full disk may be the failure
            print(f"{trace}error: {line}", file=sys.stderr, flush=True)
            os._exit(code)
        # mpirun would say at length that a rank has failed, were it not ended first
        time.sleep(GRACE_SECONDS)
    # without the clean-up of MPI and of jax.distributed, which wait for the others
    os._exit(code)


def raise_failure(code: int, failure: Path, stop: Stop, who: str = "a process") -> None:
    """Report that a process has failed, or was stopped, if one has.

    Args:
        code: with which the first one ended, or what has started it.
        failure: the file that the first one that ended early has left.
        stop: whether they were asked to end.
        who: the one that ended first, in words.
    """
    # whoever loses its connection to a process that was killed reports that too
    if failure.exists() and code >= 0:
        found = json.loads(failure.read_text())
        print(found["trace"], end="", file=sys.stderr, flush=True)
        kinds = {kind.exit_code: kind for kind in (UserError, StoppedError)}
        raise kinds.get(found["code"], MachineError)(found["message"])
    if code in ENDED_BY_ASKING and stop.reason is not None:
        raise StoppedError(
            f"stopped {stop.reason} before a step was made; the same command starts there again, and if a time limit "
            "was too short, raise slurm.hours or training.stop_before"
        )
    if code:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        raise MachineError(f"{who} of the training {how}; run again: it continues from the last checkpoint")
