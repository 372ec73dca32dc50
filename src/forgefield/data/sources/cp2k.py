"""Trajectories of CP2K: NAME-pos-1.xyz with energies in hartree, and beside it NAME-frc-1.xyz and NAME-1.cell.

CP2K writes positions in Å and forces in hartree/bohr; the frames here are in eV and Å.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import numpy as np
from ase.data import atomic_numbers

from forgefield.data.sources.frames import RawFrame, ReadOptions
from forgefield.errors import UserError
from forgefield.units import BOHR, HARTREE

COMMENT = re.compile(r"^\s*i =\s*(\d+)(?:, time =\s*[-+.\dE]+)?, E =\s*([-+.\dE]+)")
Block = tuple[list[str], np.ndarray, int, float]


def is_trajectory(path: Path) -> bool:
    """Whether a file is a trajectory, of positions or other vectors, by CP2K's comment line."""
    if path.suffix != ".xyz":
        return False
    with open(path, encoding="utf-8", errors="replace") as lines:
        next(lines, "")
        return bool(COMMENT.match(next(lines, "")))


def read_cp2k(path: Path, options: ReadOptions) -> Iterator[RawFrame]:
    """Stream the frames of one trajectory.

    Raises:
        UserError: the file is damaged, not of positions, or the forces or cells beside it are of other steps.
    """
    if kind := re.search("-(frc|vel)-", path.name):
        positions = path.name.replace(kind[0], "-pos-")
        raise UserError(f"{path}: has no positions; name {positions}, with which the forces beside it are read")
    forces = path.with_name(path.name.replace("-pos-", "-frc-"))
    cells = path.with_name(re.sub(r"-pos-(\d+)\.xyz$", r"-\1.cell", path.name))
    with ExitStack() as stack:
        force_blocks = _blocks(forces, stack.enter_context(open(forces))) if forces.exists() else None
        cell_rows = _cells(stack.enter_context(open(cells))) if cells.exists() else None
        for symbols, positions, step, energy in _blocks(path, stack.enter_context(open(path))):
            values = {"energy": energy * HARTREE}
            if force_blocks is not None:
                values["forces"] = _same_step(next(force_blocks, None), step, forces)[1] * HARTREE / BOHR
            cell = np.zeros((3, 3))
            if cell_rows is not None:
                cell = _same_step(next(cell_rows, None), step, cells)[1]
            numbers = np.array([atomic_numbers[symbol] for symbol in symbols])
            yield RawFrame(numbers, positions, cell, np.full(3, cell_rows is not None), values)


def _blocks(path: Path, lines: Iterator[str]) -> Iterator[Block]:
    for count in lines:
        comment = COMMENT.match(next(lines, ""))
        try:
            rows = [line.split() for line in islice(lines, int(count))]
            if not comment or len(rows) < int(count):
                raise ValueError
            symbols = [re.sub(r"\d+$", "", row[0]).capitalize() for row in rows]
            vectors = np.array([row[1:4] for row in rows], float).reshape(-1, 3)
        except (ValueError, IndexError):
            raise UserError(f"{path}: ends within a frame or is no trajectory of CP2K; repair it") from None
        yield symbols, vectors, int(comment[1]), float(comment[2])


def _cells(lines: Iterator[str]) -> Iterator[tuple[None, np.ndarray, int]]:
    """Columns: step, time, and the nine numbers of the three cell vectors in Å."""
    for line in lines:
        if not line.lstrip().startswith("#"):
            row = line.split()
            yield None, np.array(row[2:11], float).reshape(3, 3), int(row[0])


def _same_step(block: tuple | None, step: int, path: Path) -> tuple:
    if block is None or block[2] != step:
        found = "ends" if block is None else f"has step {block[2]}"
        raise UserError(f"{path}: {found} where the positions have step {step}; give both for the same steps")
    return block
