"""Fit energy shifts and describe a training set as a model will see it. Arguments: --help."""

from forgefield.cli.app import run
from forgefield.cli.stages import statistics

if __name__ == "__main__":
    run(statistics)
