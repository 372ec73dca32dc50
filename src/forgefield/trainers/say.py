"""Lines about a training besides its progress."""

import sys


def say(line: str) -> None:
    """Print a line for the user at once, beside what programs read."""
    print(line, file=sys.stderr, flush=True)
