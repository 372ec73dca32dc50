"""Which failed jobs Snakemake submits again, and which of them use up one of its ``retries``."""

import re
from pathlib import Path
from typing import Any

from forgefield.errors import MachineError, StoppedError, UserError
from forgefield.launch.pending import WAITS

# what Snakemake writes into the log of a job that found a mistake of the user's
MISTAKE = f"returned non-zero exit status {UserError.exit_code}."
# and of a training that was asked to end, or has lost a process or its disk
ENDED = tuple(f"returned non-zero exit status {kind.exit_code}." for kind in (StoppedError, MachineError))
# how Slurm ends a job for which it has no more time or no node, and one that may be ended in the same way each time
CUT_OFF, ENDED_FOR_ITSELF = ("TIMEOUT", "PREEMPTED", "NODE_FAIL"), ("CANCELLED", "OUT_OF_MEMORY")
# what the plugin says before and after the words of sbatch
REJECTED = re.compile(r"(?:sbatch failed|submission failed)(.*?)(?:sbatch call:|\Z)", re.DOTALL)
# in these words; a controller that does not answer, or a user with too many jobs, is no mistake
OF_MISTAKES = re.compile(r"invalid|not available|not permitted|unrecognized|more processors", re.IGNORECASE)


def is_mistake(job_info: Any, message: str) -> bool:
    """Whether another attempt would find the same mistake of the user's."""
    rejected = REJECTED.search(message)
    if WAITS in message or (rejected and OF_MISTAKES.search(rejected[1])):
        return True
    return MISTAKE in _log(job_info)


def was_cut_off(job_info: Any, message: str) -> bool:
    """Whether a limit, a signal or the machine has ended a job, and nobody who does not want it, nor itself."""
    if any(state in message for state in ENDED_FOR_ITSELF):
        return False
    return any(state in message for state in CUT_OFF) or any(words in _log(job_info) for words in ENDED)


def text_of(log: Path) -> str:
    """What a log says: nothing where it cannot be read, for an error would keep Snakemake from noticing a job's end."""
    try:
        return log.read_text(errors="replace")
    except OSError:
        return ""


def _log(job_info: Any) -> str:
    log = (job_info.aux or {}).get("slurm_logfile")
    return "" if log is None else text_of(log)


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
    """The name of the newest checkpoint beside what a job is to make; names are in the order of steps.

    None, as if there was none, where they cannot be read.
    """
    folders = {Path(output).parent / "checkpoints" for output in job.output}
    try:
        found = [path.parent.name for folder in folders for path in folder.glob("epoch_*/complete.json")]
    except OSError:
        return ""
    return max(found, default="")
