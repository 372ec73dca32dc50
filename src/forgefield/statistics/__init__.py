"""What the training set says about a model before training: energy shifts, force scale, sizes and outliers."""

from forgefield.statistics.apply import apply_statistics, used_of
from forgefield.statistics.compute import compute_statistics
from forgefield.statistics.report import log_lines

__all__ = ["apply_statistics", "compute_statistics", "log_lines", "used_of"]
