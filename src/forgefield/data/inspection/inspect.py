"""One pass over reference files, which keeps what a user wants to know of them and none of the frames."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from forgefield.data.inspection.guess import Guess, guess_units
from forgefield.data.inspection.keys import KeysSeen
from forgefield.data.inspection.order import Order
from forgefield.data.inspection.sizes import Ranges
from forgefield.data.places import Places, placed
from forgefield.data.sources.archives import plain_files
from forgefield.data.sources.converter import ENERGY_SHAPES, label_array, reason_to_reject
from forgefield.data.sources.formats import Format, find_format, named_as, read_frames
from forgefield.data.sources.frames import RawFrame, ReadOptions
from forgefield.data.structures import Structure
from forgefield.errors import UserError, named
from forgefield.units import unit_name

SAMPLE = 200  # structures by which units are judged


@dataclass(frozen=True)
class Inspection:
    """What files hold.

    Attributes:
        files: path, format and number of frames of each.
        frames: how many there are, how many conversion would leave out and why, and whether that is all of them.
        keys: of the frames: type, shapes and number of frames of each.
        labels: label -> its key, the number of frames that have it, and other keys that it could be.
        order: whether frames have the atoms of the one before, and how many compositions there are.
        sizes: atoms, elements, cells and magnitudes, the latter in eV and Å by ``guess``.
        guess: the units, and why.
        names: the keys that a dataset has to name.
        assumed: whether eV and Å are what the format's files are in unless the config says otherwise.
        warnings: what readers warned about.
    """

    files: list[dict[str, Any]]
    frames: dict[str, Any]
    keys: list[dict[str, Any]]
    labels: dict[str, dict[str, Any]]
    order: dict[str, Any]
    sizes: dict[str, Any]
    guess: Guess
    names: dict[str, str]
    assumed: bool
    warnings: list[str]


def inspect_files(paths: Sequence[Path], limit: int | None = None) -> Inspection:
    """Read files of one kind, in bounded memory.

    Args:
        paths: from :func:`find_files`.
        limit: frames to read at most; None reads all.

    Raises:
        UserError: a file cannot be read, or states other units than those before.
    """
    pass_ = _Pass(limit)
    for path in paths:
        pass_.read(path)
    if not pass_.n:
        raise UserError(f"{paths[0]}: no frames in it; set `format` if it is of another one than {pass_.form.name}")
    return pass_.result()


class _Pass:
    """What is kept of the frames so far."""

    def __init__(self, limit: int | None):
        self._limit, self.n, self._complete = limit, 0, True
        self._options = ReadOptions()
        self._places: list[tuple[str, int]] = []
        self._files: list[dict[str, Any]] = []
        self._stated: dict[str, str] | None = None
        self._keys, self._ranges, self._order = KeysSeen(), Ranges(), Order()
        self._rejected: Counter[str] = Counter()
        self._sample: list[Structure] = []
        self.form: Format | None = None

    def read(self, path: Path) -> None:
        """Take in the frames of one file, as far as the limit allows."""
        if self.n == self._limit:
            self._complete = False
            return
        first = self.n
        for name, plain in plain_files(path):
            with named_as(plain, name, self._options):
                self.form = find_format(plain, options=self._options)
                self._same_units(plain, self.form.stated(plain, self._options))
            self._places.append((name, self.n))
            for frame in self._limited(read_frames(name, plain, self.form, self._options)):
                with placed(Places(self._places)):
                    self._add(frame)
        self._files.append({"path": str(path), "format": self.form.name, "frames": self.n - first})

    def _limited(self, frames: Iterator[RawFrame]) -> Iterator[RawFrame]:
        left = None if self._limit is None else self._limit - self.n
        yield from islice(frames, left)
        if left is not None and next(frames, None) is not None:
            self._complete = False

    def _same_units(self, path: Path, stated: Mapping[str, str]) -> None:
        with named(path):
            units = {kind: unit_name(kind, word) for kind, word in stated.items()}
        if self._stated not in (None, units):
            raise UserError(f"{path}: states other units than the files before; inspect it alone")
        self._stated = units

    def _add(self, frame: RawFrame) -> None:
        index, self.n = self.n, self.n + 1
        labels = self._keys.add(frame.values, len(frame.numbers))
        reason = reason_to_reject(frame, labels) or frame.unconverged
        if reason:
            self._rejected[reason] += 1
            return
        where, n = Places(self._places).words([index]), len(frame.numbers)
        energy = label_array(labels.get("energy"), where, "energy", ENERGY_SHAPES)
        structure = Structure(
            numbers=np.asarray(frame.numbers, np.int64),
            positions=np.asarray(frame.positions, float),
            cell=np.asarray(frame.cell, float),
            pbc=np.asarray(frame.pbc, bool),
            energy=None if energy is None else float(energy.item()),
            forces=label_array(labels.get("forces"), where, "forces", [(n, 3)]),
            source_index=index,
        )
        self._ranges.add(structure)
        self._order.add(structure)
        if len(self._sample) < SAMPLE:
            self._sample.append(structure)

    def result(self) -> Inspection:
        """What was found."""
        with placed(Places(self._places)):
            guess = guess_units(self._sample, self._stated or {})
        labels = {
            label: {"key": key, "frames": self._keys.coverage[label], "or": self._keys.others.get(label, [])}
            for label, key in sorted(self._keys.chosen.items())
        }
        rejected = dict(self._rejected)
        return Inspection(
            files=self._files,
            frames={"read": self.n, "all": self._complete, "usable": self._ranges.n, "rejected": rejected},
            keys=self._keys.table(),
            labels=labels,
            order=self._order.result(),
            sizes=self._ranges.result(guess.units),
            guess=guess,
            names=self._keys.to_name(),
            assumed=self.form.assumed,
            warnings=self._options.warnings,
        )
