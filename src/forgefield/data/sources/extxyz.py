"""Extended XYZ files of any size: cut into chunks of whole frames, which any process can read."""

import warnings
from collections.abc import Iterator
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ase.io.extxyz import read_xyz

from forgefield.data.sources.ase_files import BOM, raw_frame, unreadable, warning_texts
from forgefield.data.sources.extxyz_frames import read_frame, with_nine_numbers
from forgefield.data.sources.frames import RawFrame, ReadOptions
from forgefield.errors import UserError

CHUNK_BYTES = 2**19
WORTH_BYTES = 2**25  # per process; for less, starting it takes about as long as what it spares


class Chunk(NamedTuple):
    """The text of frames that follow each other, the number of the first, and where in the file they end."""

    first: int
    frames: list[bytes]
    end: int


class Parsed(NamedTuple):
    """A chunk's frames as far as they can be read, the number of the first, what ASE warns of, why they end early, and
    the chunk's end."""

    first: int
    frames: list[RawFrame]
    warned: list[str]
    error: UserError | None
    end: int


def read_extxyz(path: Path, options: ReadOptions) -> Iterator[RawFrame]:
    """Stream the frames of a file.

    Raises:
        UserError: ASE cannot read a frame; names it.
    """
    size = path.stat().st_size
    with open(path, "rb") as file:
        for chunk in cut(file):
            parsed = parse_chunk(chunk, path, options.remedy)
            options.warnings.extend(text for text in parsed.warned if text not in options.warnings)
            yield from parsed.frames
            if parsed.error:
                raise parsed.error
            options.progress(parsed.end / size)


def processes_for(path: Path, most: int) -> int:
    """How many processes, at most so many, it is worth to read a file by."""
    return max(1, min(most, path.stat().st_size // WORTH_BYTES))


def cut(file: BinaryIO) -> Iterator[Chunk]:
    """All frames, in chunks of at least CHUNK_BYTES but for the last."""
    first, frames, size = 0, [], 0
    for frame in _frames(file):
        frames.append(frame)
        size += len(frame)
        if size >= CHUNK_BYTES:
            yield Chunk(first, frames, file.tell())
            first, frames, size = first + len(frames), [], 0
    if frames:
        yield Chunk(first, frames, file.tell())


def _frames(file: BinaryIO) -> Iterator[bytes]:
    """Each frame's text, without blank lines between them; where no frame begins, that line is the last."""
    line = file.readline().removeprefix(BOM)
    while line:
        if not line.strip():
            line = file.readline()
            continue
        try:
            n_atoms = max(0, int(line))
        except ValueError:
            yield line
            return
        frame = [line, *islice(file, n_atoms + 1)]
        line = file.readline()
        while line.lstrip().startswith(b"VEC"):  # a cell as ADF writes it
            frame.append(line)
            line = file.readline()
        yield b"".join(frame)


def parse_chunk(chunk: Chunk, path: Path, remedy: str) -> Parsed:
    """The chunk's frames; those that are unusual are read by ASE."""
    frames: list[RawFrame] = []
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for frame in chunk.frames:
                if usual := read_frame(frame) or read_frame(frame := with_nine_numbers(frame)):
                    frames.append(usual)
                else:
                    text = StringIO(frame.decode(), newline=None)
                    frames += [raw_frame(atoms) for atoms in read_xyz(text, slice(None))]
        except Exception as fault:
            error = unreadable(path, chunk.first + len(frames), "extxyz", fault, remedy)
    return Parsed(chunk.first, frames, warning_texts(path, caught), error, chunk.end)
