"""Compare evaluated runs on one page. Arguments: --help."""

from forgefield.cli.app import run
from forgefield.cli.report import report

if __name__ == "__main__":
    run(report)
