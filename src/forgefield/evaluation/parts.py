"""One HDF5 file of rows that several processes write, each a part: without a collective write, on any file system."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import h5py

from forgefield.data.processes import Processes, share
from forgefield.errors import UserError
from forgefield.files import atomic_file

Result = TypeVar("Result")
ROWS = 1024


def write_together(
    path: Path,
    n: int,
    layout: Callable[[h5py.File, int], None],
    write: Callable[[h5py.File, range], Result],
    processes: Processes,
) -> list[Result]:
    """Write a file of ``n`` rows: every process its share into a file of its own, which process 0 joins in order.

    Processes hear of one another at the end only, also of a mistake, which all of them raise and which leaves no file.

    Args:
        path: the file, in a directory that all processes share.
        n: its rows.
        layout: lays out an empty file of so many rows.
        write: fills the rows of a range into a file that holds these alone.
        processes: those that take part.

    Returns:
        What ``write`` has returned on each process.
    """
    own = _part(path, processes.index) if processes.count > 1 else path
    try:
        everyone = processes.exchange(_write(own, layout, write, share(n, processes)))
        if problem := next((problem for _, problem in everyone if problem), None):
            raise UserError(problem)
        if processes.index == 0 and processes.count > 1:
            with atomic_file(path) as temporary, h5py.File(temporary, "w") as file:
                layout(file, n)
                _join(file, [_part(path, i) for i in range(processes.count)])
        processes.exchange(None)  # the parts are needed until then
        return [result for result, _ in everyone]
    finally:
        if processes.count > 1:
            own.unlink(missing_ok=True)


def _part(path: Path, index: int) -> Path:
    return path.with_name(f".{path.name}.part{index}")


def _write(
    path: Path, layout: Callable[[h5py.File, int], None], write: Callable[[h5py.File, range], Result], rows: range
) -> tuple[Result | None, str | None]:
    """The result, or what is wrong."""
    try:
        with atomic_file(path) as temporary, h5py.File(temporary, "w") as file:
            layout(file, len(rows))
            return write(file, rows), None
    except UserError as error:
        return None, str(error)


def _join(file: h5py.File, parts: list[Path]) -> None:
    """Copy the rows of all datasets of the parts, one part after the other."""
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    start = 0
    for path in parts:
        with h5py.File(path, "r", locking=False) as part:
            n = len(part[names[0]])
            for first in range(0, n, ROWS):
                last = min(first + ROWS, n)
                for name in names:
                    file[name][start + first : start + last] = part[name][first:last]
            start += n
