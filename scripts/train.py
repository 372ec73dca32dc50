"""Fine-tune a model on a converted dataset. Arguments: --help."""

from forgefield.cli.app import run
from forgefield.cli.runs import train

if __name__ == "__main__":
    run(train)
