"""How much each structure and each of its labels counts, where the source says so."""

import difflib
from collections import Counter
from itertools import chain
from typing import Any

import numpy as np

from forgefield.config.dataset import Keys
from forgefield.data.sources.frames import RawFrame
from forgefield.errors import UserError

USUAL = {
    "weight": ("config_weight",),
    "energy_weight": ("config_energy_weight",),
    "forces_weight": ("config_forces_weight",),
    "virial_weight": ("config_virials_weight", "config_stress_weight"),
}
"""Key of the config -> the keys that are read where it is not given, as mace-torch calls them."""


class Weights:
    """The weights of a source's structures.

    Attributes:
        found: key of the config -> key of the source that frames have shown.
        missing: key of the config that names a key -> how many structures lack it.
    """

    def __init__(self, keys: Keys):
        self._named = {kind: name for kind in USUAL if (name := getattr(keys, kind)) is not None}
        self._names = {kind: (self._named[kind],) if kind in self._named else names for kind, names in USUAL.items()}
        self._all_names = frozenset(chain.from_iterable(self._names.values()))
        self.found: dict[str, str] = {}
        self.missing: Counter[str] = Counter()

    def pick(self, frame: RawFrame, where: str) -> dict[str, float]:
        """The weights of one structure's labels, as fields of :class:`Structure`; of those that it lacks 1 or none.

        Raises:
            UserError: a weight is not a number, negative or not finite; the message begins with ``where``.
        """
        for kind, name in self._named.items():
            if name not in frame.values:
                self.missing[kind] += 1
        if self._all_names.isdisjoint(frame.values):  # as nearly everywhere
            return {}
        given = {kind: self._pick(kind, frame, where) for kind in USUAL}
        whole = given.pop("weight")
        return {kind: whole * weight for kind, weight in given.items()}

    def _pick(self, kind: str, frame: RawFrame, where: str) -> float:
        for name in self._names[kind]:
            if name in frame.values:
                self.found[kind] = name
                return _weight(frame.values[name], name, where)
        return 1.0

    def warnings(self) -> list[str]:
        """A line for each named key that some structures lack."""
        return [
            f"{n} frames have no {self._named[kind]}; their weight is 1" for kind, n in sorted(self.missing.items())
        ]

    def check(self, source: str, seen: set[str]) -> None:
        """At the end of a source: were the named keys there?

        Raises:
            UserError: one never occurred.
        """
        for kind, name in self._named.items():
            if kind not in self.found:
                nearest = difflib.get_close_matches(name, seen, n=1, cutoff=0.4)
                hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
                there = ", ".join(sorted(seen)) or "none"
                raise UserError(f"{source}: no frame has keys.{kind}: {name!r}{hint or '.'} Keys there: {there}")


def _weight(value: Any, name: str, where: str) -> float:
    try:
        weight = float(np.asarray(value).item())
    except (TypeError, ValueError):
        weight = np.nan
    if not 0 <= weight < np.inf:
        raise UserError(f"{where}: the weight {name} is {str(value)[:40]}; expected a number that is not negative")
    return weight
