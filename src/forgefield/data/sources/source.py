"""A list of files as one checked stream of structures in eV and Å."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ase.stress import voigt_6_to_full_3x3_stress

from forgefield.config.dataset import DatasetConfig
from forgefield.data.checks import check_structure
from forgefield.data.joined import Joined
from forgefield.data.places import Places
from forgefield.data.quick_checks import suspects
from forgefield.data.sources.archives import plain_files
from forgefield.data.sources.formats import Format, find_format, named_as, read_frames
from forgefield.data.sources.frames import RawFrame, ReadOptions, RejectedFrame
from forgefield.data.sources.groups import Groups
from forgefield.data.sources.isolated import IsolatedAtoms
from forgefield.data.sources.labels import LabelKeys
from forgefield.data.sources.units import units_of_file
from forgefield.data.sources.weights import Weights
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.files import size_of
from forgefield.units import Factors, Units

BLOCK_ITEMS, BLOCK_ATOMS = 256, 50_000
Item = Structure | RejectedFrame


class Block(NamedTuple):
    """Items that follow each other in a source, and the structures among them together; None if there are none."""

    items: list[Item]
    joined: Joined | None


class Source:
    """All frames of a list of files, in order.

    Args:
        config: format, units and keys are read from it.
        paths: the files, from :func:`find_files`.
        jobs: processes that may read.

    Attributes:
        part_read: how much of the files has been read, from 0 to 1.
        files: for each file read so far its path, format, units, the number of its first frame in the whole source, and
            how many there are.
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
        self.keys = LabelKeys(config.keys)
        self.weights = Weights(config.keys)
        self.groups = Groups(config.split)
        self.isolated = IsolatedAtoms()
        self.warnings: list[str] = []
        self.part_read = 0.0
        self._sizes = [size_of(path) for path in paths]
        self._options = ReadOptions(self.keys.may_hold, self.warnings, jobs=jobs, progress=self._progress)
        self._without_volume = 0

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
        for block in self.blocks():
            yield from block.items

    def blocks(self) -> Iterator[Block]:
        """All items, in pieces that are checked at once."""
        items, places, n_atoms = [], [], 0
        try:
            for item, place in self._items():
                items.append(item)
                places.append(place)
                n_atoms += 0 if isinstance(item, RejectedFrame) else len(item)
                if len(items) == BLOCK_ITEMS or n_atoms > BLOCK_ATOMS:
                    yield _checked(items, places)
                    items, places, n_atoms = [], [], 0
        except UserError:
            _checked(items, places)  # a mistake in a frame before comes first
            raise
        if items:
            yield _checked(items, places)

    def _items(self) -> Iterator[tuple[Item, str]]:
        """Each item, and its file and frame for messages."""
        index = 0
        for path in self._paths:
            first, entry = index, None
            for name, plain in plain_files(path):
                form, units = self._opened(name, plain)
                if entry not in (None, entry := {"path": str(path), "format": form.name, "units": units}):
                    raise UserError(f"{name}: of another format or in other units than the files before; unpack {path}")
                frames, factors = read_frames(name, plain, form, self._options), units.factors(Units())
                number = -1
                for number, frame in enumerate(frames):
                    yield self._convert(frame, name, number, index, factors), f"{name}, frame {number}"
                    index += 1
                if number < 0:
                    raise UserError(
                        f"{name}: no frames in it (read as {form.name}); set `format` if it is of another one"
                    )
            self.files.append(entry | {"first_frame": first, "frames": index - first})
            self._progress(0.0)
        self.keys.check(self.name)
        self.weights.check(self.name, self.keys.seen)
        self.warnings += self.isolated.warnings()
        if self._without_volume:
            self.warnings.append(f"stress ignored on {self._without_volume} frames that are not periodic")

    def _progress(self, part: float) -> None:
        """Take how much of the file that follows those read whole has been read."""
        done = sum(self._sizes[: len(self.files)]) + part * self._sizes[min(len(self.files), len(self._sizes) - 1)]
        self.part_read = min(1.0, done / sum(self._sizes))

    def _opened(self, name: str, plain: Path) -> tuple[Format, Units]:
        """Format and units of a file that messages call ``name``."""
        with named_as(plain, name, self._options):
            form = find_format(plain, self._config.format, self._options)
            stated = form.stated(plain, self._options)
            return form, units_of_file(plain, self._config.units, stated, Units() if form.assumed else None)

    def _convert(self, frame: RawFrame, file: str, number: int, index: int, factors: Factors) -> Item:
        where = f"{file}, frame {number}"
        labels = self.keys.pick(frame, where)
        n = len(frame.numbers)
        energy = _array(labels.get("energy"), where, "energy", [(), (1,), (1, 1)])
        if energy is not None:
            energy = float(energy.item()) * factors.energy * self.keys.signs["energy"]
        unconverged = None if self._config.keep_unconverged else frame.unconverged
        if reason := reason_to_reject(frame, labels) or unconverged:
            if reason == ISOLATED and n == 1 and energy is not None:
                self.isolated.add(int(frame.numbers[0]), energy)
            return RejectedFrame(file, number, index, reason)
        cell = np.asarray(frame.cell, float) * factors.length
        pbc = np.asarray(frame.pbc, bool)
        forces = _array(labels.get("forces"), where, "forces", [(n, 3)])
        structure = Structure(
            numbers=np.asarray(frame.numbers, np.int64),
            positions=np.asarray(frame.positions, float) * factors.length,
            cell=cell,
            pbc=pbc,
            energy=energy,
            forces=None if forces is None else forces * (factors.forces * self.keys.signs["forces"]),
            virial=self._virial(labels, where, cell, pbc, factors),
            source_index=index,
            **self.weights.pick(frame, where),
        )
        self.groups.add(frame, file, where)
        return structure

    def _virial(self, labels, where: str, cell: np.ndarray, pbc: np.ndarray, factors: Factors) -> np.ndarray | None:
        """(3, 3) virial in eV: -stress x volume."""
        label = "virial" if "virial" in labels else "stress"
        tensor = _array(labels.get(label), where, label, [(3, 3), (9,), (6,)])
        if tensor is None:
            return None
        if not pbc.any():
            self._without_volume += 1
            return None
        full = voigt_6_to_full_3x3_stress(tensor) if tensor.size == 6 else tensor.reshape(3, 3)
        full = self.keys.signs[label] * (full + full.T) / 2
        return full * factors.virial if label == "virial" else -full * factors.stress * abs(np.linalg.det(cell))


def _checked(items: list[Item], places: list[str]) -> Block:
    """A block of structures that a calculation can have given, each of which may be looked at alone."""
    usable = [(item, place) for item, place in zip(items, places, strict=True) if isinstance(item, Structure)]
    if not usable:
        return Block(items, None)
    joined = Joined([structure for structure, _ in usable])
    for i in np.flatnonzero(suspects(joined)):
        check_structure(*usable[i])
    return Block(items, joined)


ISOLATED = "isolated atom"


def reason_to_reject(frame: RawFrame, labels: Mapping[str, Any]) -> str | None:
    """Why a frame cannot be trained on, but for its numbers; None where it can."""
    if len(frame.numbers) == 0:
        return "no atoms"
    if str(frame.values.get("config_type", "")).casefold() == "isolatedatom":
        return ISOLATED
    if len(frame.numbers) == 1 and not np.any(frame.pbc):
        return ISOLATED
    if not labels:
        return "no labels"
    return None


def _array(value: Any, where: str, label: str, shapes: list[tuple[int, ...]]) -> np.ndarray | None:
    """A label as a float64 array of one of ``shapes``; None stays None."""
    if value is None:
        return None
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise UserError(f"{where}: {label} is {str(value)[:40]!r}; expected numbers") from None
    if array.shape not in shapes:
        expected = " or ".join(map(str, shapes))
        raise UserError(
            f"{where}: {label} has shape {array.shape}, expected {expected}; name the right key by keys.{label}"
        )
    return array
