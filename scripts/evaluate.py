"""Compare a trained model, and the one it started from, with the reference. Arguments: --help."""

from forgefield.cli.app import run
from forgefield.cli.runs import evaluate

if __name__ == "__main__":
    run(evaluate)
