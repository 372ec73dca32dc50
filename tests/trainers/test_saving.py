from threading import Event

import numpy as np
import pytest
from test_checkpoints import content

from forgefield.trainers.checkpoints import load_newest, saved_checkpoints
from forgefield.trainers.record import Place
from forgefield.trainers.saving import CheckpointWriter


@pytest.fixture
def writer(tmp_path):
    def make(epochs=1, steps=None, minutes=None, keep=2):
        return CheckpointWriter(tmp_path / "checkpoints", epochs=epochs, steps=steps, minutes=minutes, keep=keep)

    return make


def test_when_one_is_due(writer):
    assert [n for n in range(1, 13) if writer(steps=4).due_in_epoch(n)] == [4, 8, 12]
    assert [n for n in range(1, 13) if writer(epochs=5).due_after(n)] == [5, 10]
    assert not writer().due_in_epoch(4)
    assert not writer(minutes=1.0).due_in_epoch(4)
    soon = writer(minutes=1e-9)
    assert soon.due_in_epoch(4)


def test_the_newest_is_written_and_nothing_waits(writer, tmp_path):
    made = writer(keep=100)
    arrays = {"w": np.zeros(1_000_000)}
    for step in range(1, 31):
        made.give(Place(0, step), arrays, content(step))
    assert made.has(Place(0, 30))
    made.finish()
    assert load_newest(tmp_path / "checkpoints").content["number"] == 30
    # while one is written, only the newest of the others waits
    assert len(saved_checkpoints(tmp_path / "checkpoints")) < 30
    assert made.seconds > 0


def test_what_cannot_be_written_is_an_error_of_the_training(writer, tmp_path):
    (tmp_path / "checkpoints").write_text("a file in the way")
    made = writer()
    made.check()
    made.give(Place(1), {}, content(1))
    with pytest.raises(OSError, match="checkpoints"):
        made.finish()
    with pytest.raises(OSError, match="checkpoints"):
        made.check()


def test_an_error_is_not_lost_where_a_newer_one_has_taken_a_place(writer, tmp_path):
    (tmp_path / "checkpoints").write_text("a file in the way")
    made, over = writer(), Event()
    made._pool.submit(over.wait)  # a slow disk
    for step in (1, 2):
        made.give(Place(0, step), {}, content(step))
    over.set()
    with pytest.raises(OSError, match="checkpoints"):
        made.finish()
