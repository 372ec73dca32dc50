"""A file in pieces of some frames, each of which is read, converted and checked at once, in whatever process."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from forgefield.data.checks import check_structure
from forgefield.data.joined import Joined
from forgefield.data.quick_checks import suspects
from forgefield.data.sources.converter import Converter, Item
from forgefield.data.sources.extxyz import Chunk, Parsed, parse_chunk
from forgefield.data.sources.frames import RawFrame
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.units import Factors

PIECE_FRAMES, PIECE_ATOMS = 256, 50_000


class Block(NamedTuple):
    """Items that follow each other in a source, and the structures among them together; None if there are none."""

    items: list[Item]
    joined: Joined | None


class Task(NamedTuple):
    """A piece of a file, and what is known of the keys when it is given to a process."""

    piece: Chunk | Parsed
    converter: Converter


class Done(NamedTuple):
    """What was made of a piece; None where it has a mistake."""

    made: Any
    converter: Converter
    frames: int
    warned: list[str]
    error: UserError | None
    end: int


@dataclass(frozen=True)
class Work:
    """What is done with the pieces of one file.

    Attributes:
        name: what messages call the file.
        path: the file, decompressed.
        first: the number of its first frame in the whole source.
        factors: from its units to eV and Å.
        remedy: what messages say that a user can do about a frame that cannot be read.
        make: what is made of each block.
    """

    name: str
    path: Path
    first: int
    factors: Factors
    remedy: str
    make: Callable[[Block], Any]

    def __call__(self, task: Task) -> Done:
        piece = task.piece
        parsed = parse_chunk(piece, self.path, self.remedy) if isinstance(piece, Chunk) else piece
        converter, error, items, made = task.converter.fresh(), parsed.error, [], None
        try:
            for number, frame in enumerate(parsed.frames, parsed.first):
                items.append(converter(frame, self.name, number, self.first + number, self.factors))
        except UserError as mistake:
            error = mistake
        try:
            block = self._checked(items, parsed.first)
            made = None if error else self.make(block)
        except UserError as mistake:  # in a frame before
            error = mistake
        return Done(made, converter, len(parsed.frames), parsed.warned, error, parsed.end)

    def _checked(self, items: list[Item], first: int) -> Block:
        """A block of structures that a calculation can have given, each of which may be looked at alone."""
        usable = [number for number, item in enumerate(items) if isinstance(item, Structure)]
        if not usable:
            return Block(items, None)
        joined = Joined([items[number] for number in usable])
        for i in np.flatnonzero(suspects(joined)):
            check_structure(joined.structures[i], f"{self.name}, frame {first + usable[i]}")
        return Block(items, joined)


def batches(frames: Iterable[RawFrame]) -> Iterator[Parsed]:
    """Frames that this process reads one by one, in pieces; a mistake is that of the last piece."""
    first, some, n_atoms = 0, [], 0
    try:
        for frame in frames:
            some.append(frame)
            n_atoms += len(frame.numbers)
            if len(some) == PIECE_FRAMES or n_atoms > PIECE_ATOMS:
                yield Parsed(first, some, [], None, 0)
                first, some, n_atoms = first + len(some), [], 0
    except UserError as error:
        yield Parsed(first, some, [], error, 0)
        return
    if some:
        yield Parsed(first, some, [], None, 0)
