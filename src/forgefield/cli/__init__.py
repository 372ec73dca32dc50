"""The command line: ``forgefield <verb>``. Nothing else in the package imports it."""

from forgefield.cli.app import main

__all__ = ["main"]
