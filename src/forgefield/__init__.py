"""Fine-tune machine-learned interatomic potentials on your own reference data.

Importing this package loads neither JAX, PyTorch nor MPI; each engine loads when it is chosen.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("forgefield")
except PackageNotFoundError:  # run from a source tree that was not installed
    __version__ = "0+unknown"
