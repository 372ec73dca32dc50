"""What a run outside of the workflow needs: converted data, the model to start from and statistics."""

from forgefield.prepare.inputs import prepare_run, removed_on_error
from forgefield.prepare.paths import RunPaths

__all__ = ["RunPaths", "prepare_run", "removed_on_error"]
