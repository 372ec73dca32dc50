"""A list of files as one checked stream of structures in eV and Å."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ase.stress import voigt_6_to_full_3x3_stress

from forgefield.config.dataset import DatasetConfig
from forgefield.data.checks import check_structure
from forgefield.data.places import Places
from forgefield.data.sources.ase_files import ase_format, read_ase
from forgefield.data.sources.frames import RawFrame, RejectedFrame
from forgefield.data.sources.labels import LabelKeys
from forgefield.data.sources.npz import UNIT_KEYS, is_npz, read_npz, stated_units
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.units import Factors, Units, energy_unit, length_unit


class Source:
    """All frames of a list of files, in order.

    Args:
        config: format, units and keys are read from it.
        paths: the files, from :func:`find_files`.

    Attributes:
        files: for each file read so far its path, format, units, the number of its first frame in the whole source, and
            how many there are.
        keys: which key holds which label, complete once the frames are used up.
        warnings: what a user should know, one line each.

    Raises:
        UserError: on iteration, for any mistake in a file or for labels that are not there; see the parts used here.
    """

    def __init__(self, config: DatasetConfig, paths: Sequence[Path]):
        self._config, self._paths = config, list(paths)
        self.files: list[dict[str, Any]] = []
        self.keys = LabelKeys(config.keys)
        self.warnings: list[str] = []
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

    def __iter__(self) -> Iterator[Structure | RejectedFrame]:
        index = 0
        for path in self._paths:
            form = self._format(path)
            units = self._units(path, form)
            factors = units.factors(Units())
            frames = read_npz(path, self.keys.may_hold) if form == "npz" else read_ase(path, form, self.warnings)
            number, first = -1, index
            for number, frame in enumerate(frames):
                yield self._convert(frame, path, number, index, factors)
                index += 1
            if number < 0:
                raise UserError(f"{path}: no frames in it (read as {form}); set `format` if it is of another one")
            self.files.append(
                {"path": str(path), "format": form, "units": units, "first_frame": first, "frames": number + 1}
            )
        self.keys.check(self.name)
        if self._without_volume:
            self.warnings.append(f"stress ignored on {self._without_volume} frames that are not periodic")

    def _format(self, path: Path) -> str:
        name = self._config.format
        if name == "npz" or (name == "auto" and is_npz(path)):
            return "npz"
        return ase_format(path, name)

    def _units(self, path: Path, form: str) -> Units:
        """The file's units: an npz file must state them or the config does; ASE's own are eV and Å."""
        if form != "npz":
            return self._config.units.or_else(Units())
        stated = {}
        for kind, word in stated_units(path).items():
            try:
                stated[kind] = {"energy": energy_unit, "length": length_unit}[kind](word)
            except UserError as error:
                raise UserError(f"{path}: {error}") from None
        for key, kind in UNIT_KEYS.items():
            configured, in_file = getattr(self._config.units, kind), stated.get(kind)
            if configured and in_file and configured != in_file:
                raise UserError(
                    f"{path}: {key} in the file is {in_file}, but units.{kind} is {configured}; correct one"
                )
            if not configured and not in_file:
                raise UserError(f"{path}: an npz file without units; set units.{kind}, such as {_EXAMPLE[kind]}")
        return self._config.units.or_else(Units(**(_EXAMPLE | stated)))

    def _convert(
        self, frame: RawFrame, path: Path, number: int, index: int, factors: Factors
    ) -> Structure | RejectedFrame:
        where = f"{path}, frame {number}"
        labels = self.keys.pick(frame, where)
        n = len(frame.numbers)
        if reason := _reason_to_reject(frame, labels):
            return RejectedFrame(str(path), number, index, reason)
        cell = np.asarray(frame.cell, float) * factors.length
        pbc = np.asarray(frame.pbc, bool)
        energy = _array(labels.get("energy"), where, "energy", [(), (1,), (1, 1)])
        forces = _array(labels.get("forces"), where, "forces", [(n, 3)])
        structure = Structure(
            numbers=np.asarray(frame.numbers, np.int64),
            positions=np.asarray(frame.positions, float) * factors.length,
            cell=cell,
            pbc=pbc,
            energy=None if energy is None else float(energy.item()) * factors.energy,
            forces=None if forces is None else forces * factors.forces,
            virial=self._virial(labels, where, cell, pbc, factors),
            source_index=index,
        )
        check_structure(structure, where)
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
        full = (full + full.T) / 2
        return full * factors.virial if label == "virial" else -full * factors.stress * abs(np.linalg.det(cell))


_EXAMPLE = {"energy": "kcal/mol", "length": "angstrom"}


def _reason_to_reject(frame: RawFrame, labels: dict[str, Any]) -> str | None:
    if len(frame.numbers) == 0:
        return "no atoms"
    if str(frame.values.get("config_type", "")).casefold() == "isolatedatom":
        return "isolated atom"
    if len(frame.numbers) == 1 and not np.any(frame.pbc):
        return "isolated atom"
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
