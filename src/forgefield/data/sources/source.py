"""A list of files as one checked stream of structures in eV and Å."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from forgefield.config.dataset import DatasetConfig
from forgefield.data.places import Places
from forgefield.data.sources.archives import plain_files
from forgefield.data.sources.converter import Converter, Item, Notes
from forgefield.data.sources.extxyz import Chunk, Parsed, cut, processes_for
from forgefield.data.sources.formats import Format, find_format, named_as, read_frames
from forgefield.data.sources.frames import ReadOptions
from forgefield.data.sources.groups import Groups
from forgefield.data.sources.isolated import IsolatedAtoms
from forgefield.data.sources.pieces import Block, Done, Task, Work, batches
from forgefield.data.sources.units import units_of_file
from forgefield.data.sources.workers import in_order
from forgefield.errors import UserError
from forgefield.files import size_of
from forgefield.units import Units

EXTXYZ = "extxyz"
Made = TypeVar("Made")


class Source:
    """All frames of a list of files, in order.

    Args:
        config: format, units and keys are read from it.
        paths: the files, from :func:`find_files`.
        jobs: processes that may read, convert and check a file, this one among them.

    Attributes:
        part_read: how much of the files has been read, from 0 to 1.
        files: for each file read so far its path, format, units, the number of its first frame in the whole source,
            how many there are, and the keys of those without labels.
        keys, weights: which key holds which label and weight, complete once the frames are used up.
        groups: which structures belong together in its split.
        isolated: energies of isolated atoms, which are among the rejected frames.
        warnings: what a user should know, one line each.

    Raises:
        UserError: on iteration, for any mistake in a file or for labels that are not there; see the parts used here.
    """

    def __init__(self, config: DatasetConfig, paths: Sequence[Path], jobs: int = 1):
        self._config, self._paths = config, list(paths)
        self.files: list[dict[str, Any]] = []
        self._jobs, self._converter = jobs, Converter(config)
        self.keys, self.weights = self._converter.keys, self._converter.weights
        self.groups = Groups()
        self.isolated = IsolatedAtoms()
        self.warnings: list[str] = []
        self.part_read = 0.0
        self._sizes = [size_of(path) for path in paths]
        self._options = ReadOptions(self.keys.may_hold, self.warnings, progress=self._progress)
        self._without_volume, self._unlabelled = 0, set[str]()

    @property
    def name(self) -> str:
        """The files in few words, for messages."""
        more = f" and {len(self._paths) - 1} more" if len(self._paths) > 1 else ""
        return f"{self._paths[0]}{more}"

    @property
    def places(self) -> Places:
        """Where the frames read so far are."""
        return Places([(file["path"], file["first_frame"]) for file in self.files])

    def __iter__(self) -> Iterator[Item]:
        for items in self.blocks(_items):
            yield from items

    def blocks(self, make: Callable[[Block], Made]) -> Iterator[Made]:
        """What is made of all frames, a block of them at a time, in whatever process has read and checked it.

        Args:
            make: a function of a module, so that it can be sent to other processes.
        """
        index = 0
        for path in self._paths:
            first, entry = index, None
            for name, plain in plain_files(path):
                form, units = self._opened(name, plain, name != str(path))
                if entry not in (None, entry := {"path": str(path), "format": form.name, "units": units}):
                    raise UserError(f"{name}: of another format or in other units than the files before; unpack {path}")
                work = Work(name, plain, index, units.factors(Units()), self._options.remedy, make)
                before = index
                for done in self._pieces(work, form):
                    index += done.frames
                    yield done.made
                if index == before:
                    raise UserError(
                        f"{name}: no frames in it (read as {form.name}); set `format` if it is of another one"
                    )
            count = {"first_frame": first, "frames": index - first, "unlabelled": sorted(self._unlabelled)}
            self.files.append(entry | count)
            self._unlabelled.clear()
            self._progress(0.0)
        self.keys.check(self.name)
        self.weights.check(self.name, self.keys.seen)
        self.warnings += self.isolated.warnings() + self.weights.warnings()
        if self._without_volume:
            self.warnings.append(
                f"stress ignored on {self._without_volume} frames that are not periodic or without volume"
            )

    def _pieces(self, work: Work, form: Format) -> Iterator[Done]:
        """What is made of the pieces of a file, in order and the same by any number of processes."""
        if form.name != EXTXYZ:
            yield from self._adopted(work, batches(read_frames(work.name, work.path, form, self._options)), 1)
            return
        with named_as(work.path, work.name, self._options), open(work.path, "rb") as file:
            yield from self._adopted(work, cut(file), processes_for(work.path, self._jobs))

    def _adopted(self, work: Work, pieces: Iterable[Chunk | Parsed], processes: int) -> Iterator[Done]:
        size, known = size_of(work.path), self._converter
        tasks = (Task(piece, known.fresh()) for piece in pieces)
        for task, done in in_order(work, tasks, processes):
            if not known.agrees(done.converter):  # frames before it have shown keys since
                done = work(Task(task.piece, known.fresh()))
            known.adopt(done.converter)
            self.warnings.extend(text for text in done.warned if text not in self.warnings)
            if done.error:
                raise done.error
            self._take(done.converter.notes)
            if done.end:
                self._progress(done.end / size)
            yield done

    def _take(self, notes: Notes) -> None:
        self.groups.add(notes.groups)
        for number, energy in notes.isolated:
            self.isolated.add(number, energy)
        self._without_volume += notes.without_volume
        self._unlabelled |= notes.unlabelled

    def _progress(self, part: float) -> None:
        """Take how much of the file that follows those read whole has been read."""
        done = sum(self._sizes[: len(self.files)]) + part * self._sizes[min(len(self.files), len(self._sizes) - 1)]
        self.part_read = min(1.0, done / sum(self._sizes))

    def _opened(self, name: str, plain: Path, is_member: bool) -> tuple[Format, Units]:
        """Format and units of a file that messages call ``name``; of an archive or not."""
        way_out = ", or unpack the archive and name the files to read" if is_member else ""
        with named_as(plain, name, self._options, way_out):
            form = find_format(plain, self._config.format, self._options)
            stated = form.stated(plain, self._options)
            return form, units_of_file(plain, self._config.units, stated, Units() if form.assumed else None)


def _items(block: Block) -> list[Item]:
    return block.items
