"""What reference files hold, in which units it seems to be, and how to use it."""

from forgefield.data.inspection.entry import as_yaml, dataset_entry, entry_name, on_one_line, problems
from forgefield.data.inspection.inspect import Inspection, inspect_files
from forgefield.data.inspection.order import suitable_split

__all__ = [
    "Inspection",
    "as_yaml",
    "dataset_entry",
    "entry_name",
    "inspect_files",
    "on_one_line",
    "problems",
    "suitable_split",
]
