"""One pass over the frames of a source."""

from array import array
from collections.abc import Iterator
from typing import NoReturn

import numpy as np
from ase.data import chemical_symbols

from forgefield.data.checks import Magnitudes
from forgefield.data.consistency import Consistency
from forgefield.data.duplicates import Fingerprints
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
        has: by label, for each usable structure whether it has it.
        elements: atomic numbers that occur.
        consistency: whether energies fit the forces.
        fingerprints: of the usable structures.

    Raises:
        UserError: no frame is usable, or the numbers contradict the units and ``trust_units`` is False.
    """

    def __init__(self, source: Source, spool: Spool, trust_units: bool = False):
        self.source, self.spool = source, spool
        self.rejected: list[RejectedFrame] = []
        has = {label: bytearray() for label in ("energy", "forces", "virial")}
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
            for label in has:
                has[label] += getattr(joined, f"has_{label}").tobytes()
        if not sizes:
            reasons = ", ".join(sorted({frame.reason for frame in self.rejected}))
            raise UserError(f"{source.name}: no usable frame: all {len(self.rejected)} are left out ({reasons})")
        self.has = {label: np.frombuffer(content, bool) for label, content in has.items()}
        self.labels = {label: int(there.sum()) for label, there in self.has.items()}
        self.sizes, self.indices, self.elements = np.array(sizes), np.array(indices), np.flatnonzero(is_there)
        contradictions = magnitudes.contradictions() + self.consistency.contradictions(source.files[0]["units"])
        if contradictions and not trust_units:
            raise UserError(f"{source.name}: {'; '.join(contradictions)}; if they are right, set trust_units: true")
        self.warnings = source.warnings + contradictions + magnitudes.warnings() + self._label_warnings()

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
            if not self.has[label].all():
                self._refuse_absent(label)

    def _refuse_absent(self, label: str) -> NoReturn:
        """A label that some frames lack: is it a whole file?"""
        index = self.indices[self.has[label].argmin()]
        file = [file for file in self.source.files if file["first_frame"] <= index][-1]
        first, stop = file["first_frame"], file["first_frame"] + file["frames"]
        if not self.has[label][(self.indices >= first) & (self.indices < stop)].any():
            keys = ", ".join(self.source.keys.unused) or "none"
            raise UserError(
                f"{file['path']}: no frame in it has {label}, as other files have by the key "
                f"{self.source.keys.found[label]}; each file needs that key. Keys not read: {keys}"
            )
        raise UserError(f"{self.source.places.words([index])}: no {label}, which others have; {REPAIR}")

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
