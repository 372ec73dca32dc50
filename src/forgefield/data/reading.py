"""One pass over the frames of a source."""

from array import array
from collections.abc import Iterator
from typing import NoReturn

import numpy as np
from ase.data import chemical_symbols

from forgefield.data.consistency import Consistency
from forgefield.data.digest import LABELS, Digest, Structures, digest
from forgefield.data.duplicates import Fingerprints
from forgefield.data.evidence import Evidence
from forgefield.data.progress import ConversionProgress
from forgefield.data.rejected import Rejected
from forgefield.data.sources import Source
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
        fingerprints: of the usable structures.

    Raises:
        UserError: no frame is usable, a file has no label, or the numbers contradict the units and ``trust_units`` is
            False.
    """

    def __init__(self, source: Source, spool: Spool, trust_units: bool = False):
        self.source, self.spool = source, spool
        self.rejected = Rejected()
        self._has = {label: bytearray() for label in LABELS}
        self._sizes, self._indices, self._is_there = array("q"), array("q"), np.zeros(len(chemical_symbols), bool)
        self.fingerprints, self._evidence, self._files_ended = Fingerprints(), Evidence(), 0
        for block in _watched(source):
            self._end_files()
            self.rejected.add(block.rejected)
            if block.structures:
                self._take(block.structures)
        self._end_files()
        if not self._sizes:
            raise UserError(
                f"{source.name}: no usable frame: all {self.rejected.count} are left out ({self.rejected.counts})"
            )
        self.rejected.check_files(source.keys)
        self.has = {label: np.frombuffer(content, bool) for label, content in self._has.items()}
        self.labels = {label: int(there.sum()) for label, there in self.has.items()}
        self.sizes, self.indices = np.frombuffer(self._sizes, np.int64), np.frombuffer(self._indices, np.int64)
        self.elements = np.flatnonzero(self._is_there)
        self._evidence.end(source.name, source.files[-1]["units"])
        if (contradictions := self._evidence.contradictions) and not trust_units:
            several = "units hold for all files, so write those in others anew first; " if len(source.files) > 1 else ""
            raise UserError(f"{'; '.join(contradictions)}; {several}if the numbers are right, set trust_units: true")
        self.warnings = source.warnings + self.rejected.warnings + contradictions + self._evidence.warnings
        self.warnings += self._label_warnings()

    @property
    def consistency(self) -> Consistency:
        """Whether energies fit the forces."""
        return self._evidence.consistency

    def _end_files(self) -> None:
        """Judge the files that have been read to their end since the last block."""
        for file in self.source.files[self._files_ended :]:
            self._evidence.end_file(file["path"], file["units"], file["first_frame"] + file["frames"])
            self.rejected.end_file(file, bool(self._indices) and self._indices[-1] >= file["first_frame"])
        self._files_ended = len(self.source.files)

    def _take(self, found: Structures) -> None:
        """Put the structures of a block to those before it."""
        self.spool.append(found.records, found.lengths)
        self.fingerprints.add(found.hashes)
        self._evidence.take(found)
        self._sizes.frombytes(found.sizes.tobytes())
        self._indices.frombytes(found.indices.tobytes())
        self._is_there[found.elements] = True
        for label, content in found.has.items():
            self._has[label] += content

    def require_complete(self) -> None:
        """Every frame has the energy and forces that others have.

        Raises:
            UserError: one does not; names it.
        """
        if frame := self.rejected.first.get("no labels"):
            raise UserError(f"{frame.file}, frame {frame.frame}: neither energy nor forces; {REPAIR}")
        for label in ("energy", "forces"):
            if not self.labels[label]:
                keys = ", ".join(self.source.keys.unused) or "none"
                raise UserError(f"{self.source.name}: no {label} found; set keys.{label}. Keys not read: {keys}")
            if not self.has[label].all():
                self._refuse_absent(label)

    def _refuse_absent(self, label: str) -> NoReturn:
        """A label that some frames lack: is it a whole file?"""
        if whole := self._files_without(label):
            raise UserError(f"{whole[0]}; each file needs that key")
        index = self.indices[self.has[label].argmin()]
        raise UserError(f"{self.source.places.words([index])}: no {label}, which others have; {REPAIR}")

    def _files_without(self, label: str) -> list[str]:
        """A line for each file with usable frames of which none has a label that others have."""
        keys, lines = ", ".join(self.source.keys.unused) or "none", []
        for file in self.source.files:
            first, stop = np.searchsorted(self.indices, [file["first_frame"], file["first_frame"] + file["frames"]])
            if first < stop and not self.has[label][first:stop].any():
                key = self.source.keys.found.get(label, label)
                lines.append(
                    f"{file['path']}: no frame in it has {label}, as other files have by the key {key}. "
                    f"Keys not read: {keys}"
                )
        return lines

    def _label_warnings(self) -> list[str]:
        n, lines = len(self.sizes), []
        for label, count in self.labels.items():
            if count < n and (count or label != "virial"):
                lines.append(f"{n - count} of {n} frames have no {label}")
                whole = self._files_without(label) if count and label != "virial" else []
                lines += [*whole[:3], f"{len(whole) - 3} more files without {label}"][: len(whole)]
        return lines


def _watched(source: Source) -> Iterator[Digest]:
    """What is kept of the source's blocks, while a person sees how far it has been read."""
    with ConversionProgress("reading") as progress:
        for block in source.blocks(digest):
            progress.part(source.part_read)
            progress.frames(block.frames)
            yield block
