"""Runs an installed program with a clock: ``timed_program.py TIMES.json PROGRAM WORDS...``.

Writes when each step of a PyTorch optimizer ended, in seconds since 1970, and how many parameters it changes.
"""

import atexit
import json
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

found: dict[str, Any] = {"steps": [], "parameters": 0}


def note(optimizer: Optimizer, *arguments: Any) -> None:
    found["steps"].append(time.time())
    found["parameters"] = sum(p.numel() for group in optimizer.param_groups for p in group["params"])


if __name__ == "__main__":
    target, program, *words = sys.argv[1:]
    register_optimizer_step_post_hook(note)
    atexit.register(lambda: Path(target).write_text(json.dumps(found)))
    (command,) = entry_points(group="console_scripts", name=program)
    sys.argv = [program, *words]
    sys.exit(command.load()())
