"""Which failed jobs Snakemake submits again, and which of them use up one of its ``retries``."""

import re
from pathlib import Path
from typing import Any

from forgefield.errors import UserError
from forgefield.launch.pending import WAITS

# what Snakemake writes into the log of a job that found a mistake of the user's
MISTAKE = f"returned non-zero exit status {UserError.exit_code}."
# what the plugin says before and after the words of sbatch
REJECTED = re.compile(r"(?:sbatch failed|submission failed)(.*?)(?:sbatch call:|\Z)", re.DOTALL)
# in these words; a controller that does not answer, or a user with too many jobs, is no mistake
OF_MISTAKES = re.compile(r"invalid|not available|not permitted|unrecognized|more processors", re.IGNORECASE)


def is_mistake(job_info: Any, message: str) -> bool:
    """Whether another attempt would find the same mistake of the user's."""
    rejected = REJECTED.search(message)
    if WAITS in message or (rejected and OF_MISTAKES.search(rejected[1])):
        return True
    log = (job_info.aux or {}).get("slurm_logfile")
    return log is not None and log.exists() and MISTAKE in log.read_text(errors="replace")


class Progress:
    """What jobs had saved when they were submitted.

    A training that ended early but has got further than before costs none of the ``retries``: it comes to its end,
    however many jobs it takes.
    """

    def __init__(self) -> None:
        self._saved: dict[Any, str] = {}

    def begin(self, job: Any) -> None:
        self._saved[job] = newest(job)

    def made(self, job: Any) -> bool:
        return newest(job) > self._saved.get(job, "")


def newest(job: Any) -> str:
    """The name of the newest checkpoint beside what a job is to make; names are in the order of steps."""
    folders = {Path(output).parent / "checkpoints" for output in job.output}
    return max((path.parent.name for folder in folders for path in folder.glob("epoch_*/complete.json")), default="")
