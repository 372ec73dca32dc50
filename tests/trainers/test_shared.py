import os
import time

from forgefield.data.processes import OneProcess
from forgefield.trainers.shared import OLD, require_shared


class Two(OneProcess):
    """Two processes that see the same."""

    def exchange(self, item):
        return [item, item]


def test_what_killed_processes_have_left_is_removed_but_not_what_others_look_for(tmp_path):
    for name, age in {"old": OLD + 60, "new": 0.0}.items():
        (tmp_path / f".shared-{name}").touch()
        os.utime(tmp_path / f".shared-{name}", (time.time() - age,) * 2)
    require_shared(tmp_path, Two(count=2))
    assert [path.name for path in tmp_path.iterdir()] == [".shared-new"]
