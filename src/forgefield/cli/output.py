"""Where a verb prints to."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead, for programs.")]


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Keep stdout for what follows the block: what is printed in it, also by its processes, goes to stderr."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
