"""From frames in a file's units to structures in eV and Å."""

import copy
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ase.stress import voigt_6_to_full_3x3_stress

from forgefield.config.dataset import DatasetConfig
from forgefield.data.neighbors import FLAT
from forgefield.data.sources.frames import RawFrame, RejectedFrame
from forgefield.data.sources.groups import GroupNames
from forgefield.data.sources.labels import LabelKeys
from forgefield.data.sources.weights import Weights
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.units import Factors

Item = Structure | RejectedFrame
ISOLATED = "isolated atom"
UNLABELLED = "no labels"
SAME_VIRIAL = 0.01  # relative and in eV; stresses are written with few digits
ENERGY_SHAPES: list[tuple[int, ...]] = [(), (1,), (1, 1)]


@dataclass
class Notes:
    """What some frames tell of their source.

    Attributes:
        isolated: atomic number and energy (eV) of each isolated atom.
        groups: the name of each structure's group, where the split wants groups.
        without_volume: structures whose stress means nothing.
        unlabelled: keys of the frames without labels.
    """

    isolated: list[tuple[int, float]] = field(default_factory=list)
    groups: list[Hashable] = field(default_factory=list)
    without_volume: int = 0
    unlabelled: set[str] = field(default_factory=set)


class Converter:
    """Makes structures of frames that follow each other.

    Attributes:
        keys, weights: which key holds which label and weight, as far as frames have shown it.
        notes: of the frames so far.
    """

    def __init__(self, config: DatasetConfig) -> None:
        self._keep_unconverged, self._group_name = config.keep_unconverged, GroupNames(config.split)
        self.keys, self.weights, self.notes = LabelKeys(config.keys), Weights(config.keys), Notes()

    def fresh(self) -> "Converter":
        """One that knows the same keys of labels, for the frames that follow."""
        other = copy.copy(self)
        other.keys, other.weights, other.notes = self.keys.fresh(), copy.copy(self.weights), Notes()
        other.weights.found, other.weights.missing = {}, Counter()
        return other

    def agrees(self, after: "Converter") -> bool:
        """Whether this one would have made the same of the frames that a fresh one was fed with."""
        return self.keys.agrees(after.keys)

    def adopt(self, after: "Converter") -> None:
        """Know the keys that a fresh one has found since."""
        self.keys.adopt(after.keys)
        self.weights.found |= after.weights.found
        self.weights.missing = self.weights.missing + after.weights.missing

    def __call__(self, frame: RawFrame, file: str, number: int, index: int, factors: Factors) -> Item:
        """A frame's structure, or why there is none.

        Args:
            frame: as its reader gave it.
            file: its file, for messages.
            number: its number there.
            index: its number in the whole source.
            factors: from the file's units to eV and Å.

        Raises:
            UserError: its labels cannot be read.
        """
        where = f"{file}, frame {number}"
        labels = self.keys.pick(frame, where)
        n = len(frame.numbers)
        energy = label_array(labels.get("energy"), where, "energy", ENERGY_SHAPES)
        if energy is not None:
            energy = float(energy.item()) * factors.energy * self.keys.signs["energy"]
        unconverged = None if self._keep_unconverged else frame.unconverged
        if reason := reason_to_reject(frame, labels) or unconverged:
            if reason == ISOLATED and n == 1 and energy is not None:
                self.notes.isolated.append((int(frame.numbers[0]), energy))
            if reason == UNLABELLED:
                self.notes.unlabelled |= frame.values.keys()
            return RejectedFrame(file, number, index, reason)
        cell = np.asarray(frame.cell, float) * factors.length
        pbc = np.asarray(frame.pbc, bool)
        forces = label_array(labels.get("forces"), where, "forces", [(n, 3)])
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
        if self._group_name.is_wanted:
            self.notes.groups.append(self._group_name(frame, file, where))
        return structure

    def _virial(self, labels, where: str, cell: np.ndarray, pbc: np.ndarray, factors: Factors) -> np.ndarray | None:
        """(3, 3) virial in eV: -stress x volume, of which a frame may have either or both."""
        found = {x: label_array(labels.get(x), where, x, [(3, 3), (9,), (6,)]) for x in ("virial", "stress")}
        found = {label: tensor for label, tensor in found.items() if tensor is not None}
        if not found:
            return None
        volume = abs(np.linalg.det(cell))
        if not pbc.any() or volume < FLAT:  # of a slab whose third cell vector is zero
            self.notes.without_volume += 1
            return None
        by_unit = {"virial": factors.virial, "stress": -factors.stress * volume}
        virial, *others = (self.keys.signs[x] * by_unit[x] * _symmetric(tensor) for x, tensor in found.items())
        if others and np.abs(virial - others[0]).max() > SAME_VIRIAL * np.abs(virial).max() + SAME_VIRIAL:
            raise UserError(
                f"{where}: virial and stress contradict each other (xx is {virial[0, 0]:.4g} eV by the virial and "
                f"{others[0][0, 0]:.4g} eV by minus stress times volume); say which by keys.virial or keys.stress"
            )
        return virial


def _symmetric(tensor: np.ndarray) -> np.ndarray:
    full = voigt_6_to_full_3x3_stress(tensor) if tensor.size == 6 else tensor.reshape(3, 3)
    return (full + full.T) / 2


def reason_to_reject(frame: RawFrame, labels: Mapping[str, Any]) -> str | None:
    """Why a frame cannot be trained on, but for its numbers; None where it can."""
    if len(frame.numbers) == 0:
        return "no atoms"
    if str(frame.values.get("config_type", "")).casefold() == "isolatedatom":
        return ISOLATED
    if len(frame.numbers) == 1 and not np.any(frame.pbc):
        return ISOLATED
    if not labels:
        return UNLABELLED
    return None


def label_array(value: Any, where: str, label: str, shapes: list[tuple[int, ...]]) -> np.ndarray | None:
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
