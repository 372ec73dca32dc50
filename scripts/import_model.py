"""Bring a foundation model into forgefield's own format and check it. Arguments: --help."""

from forgefield.cli.app import run
from forgefield.cli.stages import import_model

if __name__ == "__main__":
    run(import_model)
