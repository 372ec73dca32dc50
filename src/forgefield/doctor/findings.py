"""One line of the doctor's report."""

from dataclasses import dataclass
from typing import Literal

Section = Literal["packages", "devices", "programs", "methods", "slurm"]
Status = Literal["ok", "missing", "broken", "note"]


@dataclass(frozen=True)
class Finding:
    """What was found out about one package, device, program or method.

    Attributes:
        section: The table of the report that shows it.
        name: What was checked.
        status: ``ok``; ``missing``: not here; ``broken``: here, but failing; ``note``: fine, with a remark.
        detail: Version, or what went wrong.
        remedy: The command or step that mends it; empty where nothing needs mending.
    """

    section: Section
    name: str
    status: Status
    detail: str
    remedy: str = ""
