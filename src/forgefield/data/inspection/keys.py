"""The keys of a file's frames, and which of them hold the labels."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from forgefield.data.sources.labels import LABELS, means

ROOTS = {"energy": "energ", "forces": "forc", "stress": "stress", "virial": "virial"}
"""What is in the name of a key that may be a label although its whole name is not a usual one."""
MOST_SHAPES = 4  # shown of one key


class KeysSeen:
    """The keys of all frames: in how many frames, with which types and shapes; fed frame by frame.

    Attributes:
        chosen: label -> the key that inspection takes it from.
        coverage: label -> frames that have it.
    """

    def __init__(self) -> None:
        self._frames: Counter[str] = Counter()
        self._types: dict[str, str] = {}
        self._shapes: dict[str, dict[str, None]] = {}
        self._may_be: dict[str, set[str]] = {label: set() for label in LABELS}
        self.chosen: dict[str, str] = {}
        self.coverage: Counter[str] = Counter()

    def add(self, values: Mapping[str, Any], n_atoms: int) -> dict[str, Any]:
        """Take in what a frame of ``n_atoms`` holds; gives its labels as they are."""
        for key, value in values.items():
            self._frames[key] += 1
            array = np.asarray(value) if not isinstance(value, dict | str) else np.empty(())
            self._types.setdefault(key, type(value).__name__ if isinstance(value, dict | str) else str(array.dtype))
            shapes = self._shapes.setdefault(key, {})
            if len(shapes) < MOST_SHAPES:
                shapes[_shape(array.shape, n_atoms)] = None
            if self._frames[key] == 1:
                self._consider(key, array, n_atoms)
        labels = {label: values[key] for label, key in self.chosen.items() if key in values}
        self.coverage.update(labels.keys())
        return labels

    def _consider(self, key: str, array: np.ndarray, n_atoms: int) -> None:
        """A new key with a name and the shape of a label may be it."""
        shapes = {"energy": {(), (1,), (1, 1)}, "forces": {(n_atoms, 3)}}
        for label in LABELS:
            fits = array.dtype.kind in "fi" and array.shape in shapes.get(label, {(3, 3), (9,), (6,)})
            if fits and (ROOTS[label] in key.casefold() or means(key, label)):
                self._may_be[label].add(key)
        methods = {_rest(key, "forces") for key in self._may_be["forces"]}
        for label, keys in self._may_be.items():  # energy first
            if keys:
                _, self.chosen[label] = min((_rank(label, key, methods), key) for key in keys)
                methods = {_rest(self.chosen[label], label)} if label == "energy" else methods

    @property
    def others(self) -> dict[str, list[str]]:
        """Label -> other keys that it could be taken from."""
        rest = {label: sorted(keys - {self.chosen.get(label)}) for label, keys in self._may_be.items()}
        return {label: keys for label, keys in rest.items() if keys}

    def to_name(self) -> dict[str, str]:
        """The keys that a dataset has to name: what conversion would not find, or not be sure of."""
        named = {}
        for label, key in self.chosen.items():
            usual = [k for k in self._may_be[label] if means(k, label)]
            if not means(key, label) or len(usual) > 1:
                named[label] = key
        if {"stress", "virial"} <= named.keys():
            del named["stress"]
        return named

    def table(self) -> list[dict[str, Any]]:
        """One entry for each key, in alphabetical order."""
        return [
            {"key": key, "type": self._types[key], "shapes": list(self._shapes[key]), "frames": self._frames[key]}
            for key in sorted(self._frames, key=str.casefold)
        ]


def _shape(shape: tuple[int, ...], n_atoms: int) -> str:
    """With the word atoms where the number of atoms stands."""
    return " x ".join("atoms" if n == n_atoms and i == 0 else str(n) for i, n in enumerate(shape)) or "one"


def _rank(label: str, key: str, methods: set[str]) -> tuple[bool, bool, bool]:
    """The standard name first, then usual ones, then those of a method that has both energies and forces."""
    return key != label, not means(key, label), _rest(key, label) not in methods


def _rest(key: str, label: str) -> str:
    """What is in a key beside the label's name, such as wb97x_dz in wb97x_dz.energy."""
    return re.sub(rf"{ROOTS[label]}\w*", "", key.casefold()).strip("._- ")
