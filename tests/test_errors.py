import errno

import pytest

from forgefield.errors import MachineError, UserError, reported_errors


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


def test_a_mistake_of_the_program_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), reported_errors():
        _ = 1 / 0
