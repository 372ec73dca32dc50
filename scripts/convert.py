"""Convert reference files to HDF5 with units, split into train, valid and test. Arguments: --help."""

from forgefield.cli.app import run
from forgefield.cli.stages import convert

if __name__ == "__main__":
    run(convert)
