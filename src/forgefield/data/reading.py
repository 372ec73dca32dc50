"""One pass over the frames of a source."""

from array import array
from collections.abc import Iterator

import numpy as np
from ase.data import chemical_symbols

from forgefield.data.checks import Magnitudes
from forgefield.data.consistency import Consistency
from forgefield.data.duplicates import Fingerprints
from forgefield.data.joined import Joined
from forgefield.data.progress import ConversionProgress
from forgefield.data.sources import Block, RejectedFrame, Source
from forgefield.data.spool import Spool
from forgefield.errors import UserError

REPAIR = "repair or remove it, or `forgefield convert` the data first, in which what is absent does not count"


class Reading:
    """One pass over a source: the usable structures go to the spool, and what the report needs is kept.

    Attributes:
        source: used up.
        spool: the usable structures.
        rejected: the frames left out.
        sizes, indices: atoms and frame number of each usable structure.
        labels: how many structures have an energy, forces, a virial.
        without: by label, the frame number of the first structure that lacks it.
        elements: atomic numbers that occur.
        consistency: whether energies fit the forces.
        fingerprints: of the usable structures.

    Raises:
        UserError: no frame is usable, or the numbers contradict the units and ``trust_units`` is False.
    """

    def __init__(self, source: Source, spool: Spool, trust_units: bool = False):
        self.source, self.spool = source, spool
        self.rejected: list[RejectedFrame] = []
        self.labels = dict.fromkeys(("energy", "forces", "virial"), 0)
        self.without: dict[str, int] = {}
        sizes, indices, magnitudes = array("q"), array("q"), Magnitudes()
        is_there = np.zeros(len(chemical_symbols), bool)
        self.consistency, self.fingerprints = Consistency(), Fingerprints()
        for items, joined in _watched(source):
            self.rejected += [item for item in items if isinstance(item, RejectedFrame)]
            if joined is None:
                continue
            spool.append(joined)
            magnitudes.add(joined)
            self.fingerprints.add(joined)
            for structure in joined.structures:
                self.consistency.add(structure)
            sizes.extend(joined.sizes.tolist())
            indices.extend(structure.source_index for structure in joined.structures)
            is_there[joined.numbers] = True
            self._count(joined)
        if not sizes:
            reasons = ", ".join(sorted({frame.reason for frame in self.rejected}))
            raise UserError(f"{source.name}: no usable frame: all {len(self.rejected)} are left out ({reasons})")
        self.sizes, self.indices, self.elements = np.array(sizes), np.array(indices), np.flatnonzero(is_there)
        contradictions = magnitudes.contradictions() + self.consistency.contradictions(source.files[0]["units"])
        if contradictions and not trust_units:
            raise UserError(f"{source.name}: {'; '.join(contradictions)}; if they are right, set trust_units: true")
        self.warnings = source.warnings + contradictions + magnitudes.warnings() + self._label_warnings()

    def _count(self, joined: Joined) -> None:
        """Take in which labels there are."""
        has = {"energy": joined.has_energy, "forces": joined.has_forces, "virial": joined.has_virial}
        for label, is_there in has.items():
            self.labels[label] += int(is_there.sum())
            if not is_there.all():
                self.without.setdefault(label, joined.structures[int(is_there.argmin())].source_index)

    def require_complete(self) -> None:
        """Every frame has the energy and forces that others have.

        Raises:
            UserError: one does not; names it.
        """
        for frame in self.rejected:
            if frame.reason == "no labels":
                raise UserError(f"{frame.file}, frame {frame.frame}: neither energy nor forces; {REPAIR}")
        for label in ("energy", "forces"):
            if not self.labels[label]:
                keys = ", ".join(self.source.keys.unused) or "none"
                raise UserError(f"{self.source.name}: no {label} found; set keys.{label}. Keys not read: {keys}")
            if label in self.without:
                where = self.source.places.words([self.without[label]])
                raise UserError(f"{where}: no {label}, which others have; {REPAIR}")

    def _label_warnings(self) -> list[str]:
        n = len(self.sizes)
        absent = {label: n - self.labels[label] for label in ("energy", "forces")}
        if self.labels["virial"]:
            absent["virial"] = n - self.labels["virial"]
        return [f"{missing} of {n} frames have no {label}" for label, missing in absent.items() if missing]


def _watched(source: Source) -> Iterator[Block]:
    """The source's blocks, while a person sees how far it has been read."""
    with ConversionProgress("reading") as progress:
        for block in source.blocks():
            progress.part(source.part_read)
            progress.frames(len(block.items))
            yield block
