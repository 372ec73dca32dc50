"""What is seen of the doctor before its report."""

import io

from rich.console import Console

from forgefield.doctor.progress import RunningChecks


def shown(terminal):
    """What three checks show, of which the second starts while the first runs."""
    output = io.StringIO()
    with RunningChecks(Console(file=output, force_terminal=terminal, width=80)) as checks:
        with checks.running("jax"), checks.running("fabric"):
            pass
        with checks.running("programs"):
            pass
    return output.getvalue()


def test_each_check_is_a_line_where_there_is_no_terminal():
    assert shown(terminal=False).splitlines() == ["checking jax", "checking fabric", "checking programs"]


def test_a_terminal_has_one_line_with_all_running_checks():
    text = shown(terminal=True)
    assert text.count("\n") == 1
    assert text.endswith("\x1b[1A\x1b[2K")  # one line up, and erased


def test_the_line_names_what_still_runs():
    checks = RunningChecks(Console(file=io.StringIO(), force_terminal=True))
    with checks, checks.running("jax"):
        with checks.running("fabric"):
            assert checks._status.status == "checking jax, fabric"
        assert checks._status.status == "checking jax"
