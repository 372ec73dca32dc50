"""Draw the parity plots of an evaluated run. Arguments: --help."""

from forgefield.cli.app import run
from forgefield.cli.runs import plot

if __name__ == "__main__":
    run(plot)
