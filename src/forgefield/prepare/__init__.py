"""What a run outside of the workflow needs: converted data, the model to start from and statistics."""

from forgefield.prepare.inputs import prepare_run, removed_on_error
from forgefield.prepare.lock import only_one
from forgefield.prepare.paths import RunPaths

__all__ = ["RunPaths", "only_one", "prepare_run", "removed_on_error"]
