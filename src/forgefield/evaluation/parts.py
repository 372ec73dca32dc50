"""One HDF5 file of rows that several processes write: without a collective write, on any file system.

Batches of consecutive rows are dealt out in turn, so that each process has its share of the large and of the small
structures of ordered data. Which rows are a batch does not depend on how many processes there are.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import h5py
import numpy as np

from forgefield.data.processes import Processes
from forgefield.errors import UserError
from forgefield.files import atomic_file

Item = TypeVar("Item")
# processes, and devices of them, that have work even where data are few
LEAST_BATCHES = 64
ROWS = 1024


def batches_of(n: int, batch: int) -> list[range]:
    """``n`` rows in order, ``batch`` at once, or fewer where that makes less than ``LEAST_BATCHES``."""
    length = max(1, min(batch, n // LEAST_BATCHES))
    return [range(start, min(start + length, n)) for start in range(0, n, length)]


def write_together(
    path: Path,
    batches: Sequence[range],
    layout: Callable[[h5py.File, int], None],
    write: Callable[[h5py.File, Sequence[range]], None],
    processes: Processes,
) -> None:
    """Write a file of rows: every process its batches into a file of its own, which process 0 joins in order.

    Processes hear of one another at the end only, also of a mistake, which all of them raise and which leaves no file.

    Args:
        path: the file, in a directory that all processes share.
        batches: all rows, in order.
        layout: lays out an empty file of so many rows.
        write: writes the rows of some batches, one after the other, into a file that holds these alone.
        processes: those that take part.
    """
    count, index = processes.count, processes.index
    own = _part(path, index) if count > 1 else path
    try:
        problems = processes.exchange(_write(own, layout, write, batches[index::count]))
        if problem := next(filter(None, problems), None):
            raise UserError(problem)
        if count > 1:
            if index == 0:
                with atomic_file(path) as temporary, h5py.File(temporary, "w") as file:
                    layout(file, _rows(batches))
                    _join(file, [_part(path, i) for i in range(count)], batches)
            processes.exchange(None)  # the parts are needed until then
    finally:
        if count > 1:
            own.unlink(missing_ok=True)


def _part(path: Path, index: int) -> Path:
    # what a killed process leaves has a name that is removed at the next start
    return path.with_name(f".{path.name}.part{index}.tmp")


def _rows(batches: Sequence[range]) -> int:
    return sum(map(len, batches))


def _write(
    path: Path,
    layout: Callable[[h5py.File, int], None],
    write: Callable[[h5py.File, Sequence[range]], None],
    batches: Sequence[range],
) -> str | None:
    """What is wrong, if anything is."""
    try:
        with atomic_file(path) as temporary, h5py.File(temporary, "w") as file:
            layout(file, _rows(batches))
            write(file, batches)
    except UserError as error:
        return str(error)
    return None


def _join(file: h5py.File, paths: Sequence[Path], batches: Sequence[range]) -> None:
    """Copy the rows of all datasets of the parts, in the order of the batches."""
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) and item.shape else None)
    with ExitStack() as stack:
        parts = [stack.enter_context(h5py.File(path, "r", locking=False)) for path in paths]
        starts = np.zeros(len(parts), np.int64)
        # in turns of all processes, so many that they fill a block
        turns = max(1, ROWS // (len(batches[0]) * len(parts))) if batches else 1
        for some in grouped(batches, turns * len(parts)):
            lengths = [[len(rows) for rows in some[i :: len(parts)]] for i in range(len(parts))]
            place = slice(some[0].start, some[-1].stop)
            for name in names:
                columns = [p[name][a : a + sum(n)] for p, a, n in zip(parts, starts, lengths, strict=True)]
                pieces = [iter(np.split(c, np.cumsum(n)[:-1])) for c, n in zip(columns, lengths, strict=True)]
                file[name][place] = np.concatenate([next(pieces[i % len(parts)]) for i in range(len(some))])
            starts += [sum(n) for n in lengths]


def grouped(items: Sequence[Item], n: int) -> Iterator[Sequence[Item]]:
    """Consecutive items, ``n`` at a time."""
    return (items[start : start + n] for start in range(0, len(items), n))
