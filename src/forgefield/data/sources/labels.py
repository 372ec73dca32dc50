"""Which of a source's own keys hold the energy, the forces and the stress or virial."""

import copy
import difflib
import re
from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np

from forgefield.config.dataset import Keys
from forgefield.data.sources.frames import RawFrame
from forgefield.errors import UserError

ROUNDED = 1e-5  # as far as two ways of writing a number may differ
LABELS = ("energy", "forces", "stress", "virial")

WORDS = {
    "energy": {"energy", "energies", "e", "etot", "totenergy"},
    "forces": {"forces", "force", "f"},
    "stress": {"stress", "stresses"},
    "virial": {"virial", "virials"},
}
"""Usual names of each label, whatever their case."""

AFFIXES = {
    *("ref", "reference", "total", "tot", "potential", "pot", "qm", "dft", "xtb", "gfn1", "gfn2", "lda", "pbe", "pbe0"),
    *("revpbe", "blyp", "b3lyp", "wb97x", "wb97m", "scan", "r2scan", "rpa", "hf", "mp2", "cc", "ccsd"),
}
"""What may stand before or after such a name, joined by an underscore, as in ``dft_energy`` and ``forces_xtb``."""


class LabelKeys:
    """The key of each label, found once and then the same for a whole source.

    A key that the config names is taken as it stands. Otherwise the standard name (energy, forces, stress, virial) is,
    and where that is absent a usual other name. Others beside it must hold the same numbers.

    Attributes:
        found: label -> key, as far as frames have shown it.
        signs: label -> -1 where the config has a minus before the key, else 1.
        seen: every key met so far.
    """

    def __init__(self, keys: Keys):
        named = {label: key for label in LABELS if (key := getattr(keys, label)) is not None}
        self.signs = {label: -1.0 if named.get(label, "").startswith("-") else 1.0 for label in LABELS}
        self._named = {label: key.removeprefix("-") for label, key in named.items()}
        self._wanted = [label for label in LABELS if label not in self._excluded()]
        self.found: dict[str, str] = {}
        self.seen: set[str] = set()
        self._others: dict[str, list[str]] = {}

    def _excluded(self) -> set[str]:
        """Stress and virial are one label: naming one leaves the other alone."""
        return {"stress"} if "virial" in self._named else {"virial"} if "stress" in self._named else set()

    def may_hold(self, key: str) -> bool:
        """Whether a key would be read as a label."""
        return any(key == self._named[x] if x in self._named else means(key, x) for x in self._wanted)

    def pick(self, frame: RawFrame, where: str) -> dict[str, Any]:
        """The labels of one frame, raw.

        Args:
            frame: as its reader gave it.
            where: file and frame, for messages.

        Raises:
            UserError: several keys could be one label, hold different numbers, and the config names none.
        """
        if new := frame.values.keys() - self.seen:
            self.seen |= new
            for label in self._wanted:
                self._resolve(label, new)
        for label in self._wanted:
            if others := self._others.get(label):
                self._compare(label, others, frame, where)
        return {label: frame.values[key] for label, key in self.found.items() if key in frame.values}

    def _resolve(self, label: str, new: Set[str]) -> None:
        """Look at new keys only: every frame may have one of its own."""
        if label in self._named:
            if (key := self._named[label]) in new:
                self.found[label] = key
            return
        if candidates := sorted(key for key in new if means(key, label)):
            self.found.setdefault(label, label if label in candidates else candidates[0])
            self._add_others(label, candidates)

    def _add_others(self, label: str, keys: Iterable[str]) -> None:
        self._others[label] = sorted({*self._others.get(label, ()), *keys} - {self.found[label]})

    def _compare(self, label: str, others: Sequence[str], frame: RawFrame, where: str) -> None:
        """Keys that mean one label hold the same numbers, and a source does not change from one to the other."""
        key = self.found[label]
        sizes = {"energy": (1,), "forces": (3 * len(frame.numbers),)}.get(label, (6, 9))  # not energies of atoms
        there = [other for other in others if other in frame.values and np.size(frame.values[other]) in sizes]
        if there and key not in frame.values:
            raise UserError(
                f"{where}: {label} may be {there[0]}, but is {key} in frames before; say which by keys.{label}, and "
                "convert files with other keys to these first"
            )
        if differing := [other for other in there if not _same(frame.values[key], frame.values[other])]:
            raise UserError(
                f"{where}: {label} may be {' or '.join([key, *differing])}, which differ; say which by keys.{label}"
            )

    def fresh(self) -> "LabelKeys":
        """One that knows the keys of labels, for the frames that follow; what else was seen does not matter to them."""
        other = copy.copy(self)
        other.seen, other.found, other._others = set(), dict(self.found), dict(self._others)
        return other

    def agrees(self, other: "LabelKeys") -> bool:
        """Whether this one would have taken the same keys for labels from the frames that another was fed with."""
        return all(self.found.get(label, key) == key for label, key in other.found.items())

    def adopt(self, other: "LabelKeys") -> None:
        """Know the keys that one that it agrees with has found."""
        self.seen |= other.seen
        self.found |= other.found
        for label, keys in other._others.items():
            self._add_others(label, keys)

    def check(self, source: str) -> None:
        """At the end of a source: were the named keys there, and any label at all?

        Raises:
            UserError: a key that the config names never occurred, or no energies and no forces were found.
        """
        for label, key in self._named.items():
            if label not in self.found:
                nearest = difflib.get_close_matches(key, self.seen, n=1, cutoff=0.4)
                hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
                raise UserError(f"{source}: no frame has keys.{label}: {key!r}{hint or '.'} {self._there()}")
        if not self.found.keys() & {"energy", "forces"}:
            raise UserError(
                f"{source}: no energies and no forces found; set keys.energy and keys.forces. {self._there()}"
            )

    def _there(self) -> str:
        return f"Keys there: {', '.join(sorted(self.seen)) or 'none'}"

    @property
    def described(self) -> dict[str, str]:
        """``found``, with a minus before a key whose sign is turned."""
        return {label: key if self.signs[label] > 0 else f"-{key}" for label, key in self.found.items()}

    @property
    def unused(self) -> list[str]:
        """Keys of the source that are not read."""
        return sorted(self.seen - set(self.found.values()))


def means(key: str, label: str) -> bool:
    """Whether a key is a usual name of a label: one of its words, alone or with affixes."""
    parts = [part for part in re.split(r"[_\s-]+", key.casefold()) if part]
    words = [part for part in parts if part in WORDS[label]]
    return len(words) == 1 and all(part in AFFIXES for part in parts if part not in words)


def _same(a: Any, b: Any) -> bool:
    """Whether two labels are the same numbers but for the digits with which they are written."""
    try:
        a, b = np.ravel(np.asarray(a, float)), np.ravel(np.asarray(b, float))
    except (TypeError, ValueError):
        return False
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-8, atol=ROUNDED, equal_nan=True)
