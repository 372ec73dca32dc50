"""Which of a source's own keys hold the energy, the forces and the stress or virial."""

import difflib
import re
from typing import Any

from forgefield.config.dataset import Keys
from forgefield.data.sources.frames import RawFrame
from forgefield.errors import UserError

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
    and where that is absent a usual other name, provided that there is exactly one.

    Attributes:
        found: label -> key, as far as frames have shown it.
        seen: every key met so far.
    """

    def __init__(self, keys: Keys):
        self._named = {label: key for label in LABELS if (key := getattr(keys, label)) is not None}
        self._wanted = [label for label in LABELS if label not in self._excluded()]
        self.found: dict[str, str] = {}
        self.seen: set[str] = set()

    def _excluded(self) -> set[str]:
        """Stress and virial are one label: naming one leaves the other alone."""
        return {"stress"} if "virial" in self._named else {"virial"} if "stress" in self._named else set()

    def may_hold(self, key: str) -> bool:
        """Whether a key would be read as a label."""
        return any(key == self._named[x] if x in self._named else _means(key, x) for x in self._wanted)

    def pick(self, frame: RawFrame, where: str) -> dict[str, Any]:
        """The labels of one frame, raw.

        Args:
            frame: as its reader gave it.
            where: file and frame, for messages.

        Raises:
            UserError: several keys could be one label and the config names none.
        """
        if not frame.values.keys() <= self.seen:
            self.seen |= frame.values.keys()
            for label in self._wanted:
                self._resolve(label, where)
        return {label: frame.values[key] for label, key in self.found.items() if key in frame.values}

    def _resolve(self, label: str, where: str) -> None:
        if label in self._named:
            if (key := self._named[label]) in self.seen:
                self.found[label] = key
            return
        if self.found.get(label) == label:
            return
        candidates = [label] if label in self.seen else sorted(key for key in self.seen if _means(key, label))
        candidates += [key for key in [self.found.get(label)] if key and key not in candidates]
        if len(candidates) > 1:
            raise UserError(f"{where}: {label} may be {' or '.join(candidates)}; say which by keys.{label}")
        if candidates:
            self.found[label] = candidates[0]
        if {"stress", "virial"} <= self.found.keys():
            del self.found["stress"]  # one label twice: the virial needs no conversion

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
    def unused(self) -> list[str]:
        """Keys of the source that are not read."""
        return sorted(self.seen - set(self.found.values()))


def _means(key: str, label: str) -> bool:
    """Whether a key is a usual name of a label: one of its words, alone or with affixes."""
    parts = [part for part in re.split(r"[_\s-]+", key.casefold()) if part]
    words = [part for part in parts if part in WORDS[label]]
    return len(words) == 1 and all(part in AFFIXES for part in parts if part not in words)
