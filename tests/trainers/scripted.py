"""A stop that comes after so many optimizer steps, or the end of the process then."""

import os
import signal

from forgefield.trainers.stopping import Stop


class Scripted(Stop):
    """Asks to end, or kills this process, once ``trainer`` has done so many steps; ``event`` is as ``ask@7``."""

    def __init__(self, trainer, event):
        super().__init__()
        self._trainer, (self._what, at) = trainer, event.split("@")
        self._at = int(at)

    @property
    def asked(self):
        due = self._trainer._record.step >= self._at
        if due and self._what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return due
