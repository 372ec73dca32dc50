"""A process that stops answering is named, and the training ended, within the time that the configuration gives it."""

import os
import re
import signal
import time

import pytest
from trainings import METHODS, Trainings
from victim import members

LIMIT, END = 8.0, 20.0  # of the training; and for the end of all processes after it


@pytest.mark.parametrize("method", [name for name, (_, processes) in METHODS.items() if processes > 1])
def test_a_process_that_is_halted_is_named_and_the_training_ended(folder, method):
    trainings = Trainings(folder, method)
    process = trainings.start("hung", epochs=100_000, hang_timeout=LIMIT)
    output = trainings.base / "hung"
    while not (output / "history.csv").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    (halted,) = [pid for pid, rank in members(output).items() if rank == 1]
    start = time.monotonic()
    os.kill(halted, signal.SIGSTOP)
    written = process.communicate(timeout=LIMIT + END)[1]
    assert LIMIT / 2 < time.monotonic() - start < LIMIT + END
    assert process.returncode == 3
    (error,) = [line for line in written.splitlines() if line.startswith("error: ")]
    assert re.match(rf"error: rank 1 \(process {halted} on \S+\) gave no sign of life for 8 s", error)
    assert error.endswith("run again: it continues from the last checkpoint")
    assert "Traceback" not in written
    assert members(output) == {}
