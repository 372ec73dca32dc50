"""Files that several processes write together, here threads that meet as processes do."""

import threading
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest

from forgefield.errors import UserError
from forgefield.evaluation import parts
from forgefield.evaluation.parts import batches_of, write_together


class Meeting:
    """Threads side by side, each a :class:`~forgefield.data.processes.Processes`."""

    def __init__(self, count):
        self.items, self.barrier = [None] * count, threading.Barrier(count)
        self.members = [Member(self, i, count) for i in range(count)]


class Member:
    def __init__(self, meeting, index, count):
        self._meeting, self.index, self.count = meeting, index, count

    def exchange(self, item):
        self._meeting.items[self.index] = item
        self._meeting.barrier.wait(20)
        everyone = list(self._meeting.items)
        self._meeting.barrier.wait(20)
        return everyone


def layout(file, n):
    file["about"] = np.bytes_(b"rows")
    file.create_dataset("number", (n,), int)
    file.create_dataset("group/square", (n, 2), float)


def write(file, batches):
    start = 0
    for rows in batches:
        stop = start + len(rows)
        file["number"][start:stop] = rows
        file["group/square"][start:stop] = np.array(rows)[:, None] ** 2
        start = stop


def together(path, batches, count, write=write):
    with ThreadPoolExecutor(count) as pool:
        run = [pool.submit(write_together, path, batches, layout, write, member) for member in Meeting(count).members]
        return [future.exception(30) for future in run]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 5, 23, 200])
def test_rows_are_in_order_whatever_the_number_of_processes(tmp_path, monkeypatch, count, n):
    monkeypatch.setattr(parts, "ROWS", 10)
    monkeypatch.setattr(parts, "LEAST_BATCHES", 4)
    path = tmp_path / "rows.h5"
    assert together(path, batches_of(n, 3), count) == [None] * count
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["number"], np.arange(n))
        np.testing.assert_array_equal(file["group/square"], np.arange(n)[:, None] ** 2 * np.ones((1, 2)))
        assert file["about"][()] == b"rows"
    assert [p.name for p in tmp_path.iterdir()] == ["rows.h5"]


def test_a_mistake_is_raised_by_all_and_leaves_no_file(tmp_path):
    def fails(file, batches):
        write(file, batches)
        if 4 in batches[-1]:
            raise UserError("frame 4: wrong")

    found = together(tmp_path / "rows.h5", batches_of(6, 1), 3, fails)
    assert [str(error) for error in found] == ["frame 4: wrong"] * 3
    assert not list(tmp_path.iterdir())


def test_batches_are_full_where_there_are_many_and_many_where_there_are_few():
    assert batches_of(10_000, 32)[0] == range(32)
    assert len(batches_of(640, 32)) == 64
    assert len(batches_of(20, 32)) == 20
    assert [i for rows in batches_of(333, 32) for i in rows] == list(range(333))
