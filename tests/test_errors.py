import errno

import pytest

from forgefield.errors import MachineError, UserError, reported_errors
from forgefield.files import atomic_directory, atomic_file


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UserError("data.npz, frame 3: no\n  energy"), 2, "data.npz, frame 3: no energy"),
        (MachineError("results: disk full"), 3, "results: disk full"),
        (FileNotFoundError(errno.ENOENT, "No such file", "lost/x"), 2, "lost/x: No such file; choose another path"),
        (OSError(errno.ENOSPC, "No space left on device", "big"), 3, "big: No space left on device; choose another"),
    ],
)
def test_a_failure_is_one_line_and_an_exit_code(error, code, line, capsys):
    with pytest.raises(SystemExit) as stop, reported_errors():
        raise error
    assert stop.value.code == code
    [printed] = capsys.readouterr().err.splitlines()
    assert printed.startswith(f"error: {line}")


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("division by zero"),
        BrokenPipeError(errno.EPIPE, "Broken pipe"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        OSError(errno.EBADF, "Bad file descriptor"),
    ],
)
def test_a_mistake_of_the_program_keeps_its_traceback(error):
    """What names no file is nothing that a user could mend."""
    with pytest.raises(type(error)) as raised, reported_errors():
        raise error
    assert raised.value is error


@pytest.mark.parametrize("atomic", [atomic_file, atomic_directory])
def test_a_full_disk_is_a_line_that_names_what_was_to_be_written(atomic, tmp_path, capsys):
    """A write into an open file fails without a file's name."""
    with pytest.raises(SystemExit) as stop, reported_errors(), atomic(tmp_path / "result"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert stop.value.code == 3
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'result'}: No space left on device")
    assert list(tmp_path.iterdir()) == []
