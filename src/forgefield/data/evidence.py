"""Do the numbers fit the units? Each file is judged by itself, so that a large one does not hide a small one."""

import numpy as np

from forgefield.data.consistency import Consistency
from forgefield.data.digest import Structures
from forgefield.data.magnitudes import Magnitudes
from forgefield.data.spool import unpack
from forgefield.units import Units

FEW = 10  # structures; those of smaller files are judged together, but for what cannot be true


class Evidence:
    """Fed with the structures of a source, block by block, and with the end of each file.

    Attributes:
        consistency: whether energies fit the forces.
        contradictions, warnings: what was found, one line each.
    """

    def __init__(self) -> None:
        self.consistency = Consistency()
        self.contradictions: list[str] = []
        self.warnings: list[str] = []
        self._is_told = False  # that energies do not fit the forces
        self._magnitudes, self._small = Magnitudes(), dict[Units, Magnitudes]()

    def take(self, found: Structures) -> None:
        """Take in the structures of a block of one file."""
        is_sampled = self._magnitudes.take(len(found.sizes), found.energy_ratios, found.force_rms)
        is_paired = self.consistency.wants(found.indices)
        ends = np.cumsum(found.lengths)
        for i in np.flatnonzero(is_sampled | is_paired):
            structure = unpack(found.records[ends[i] - found.lengths[i] : ends[i]])
            if is_sampled[i]:
                self._magnitudes.sample(structure)
            self.consistency.add(structure)

    def end_file(self, name: str, units: Units, next_frame: int) -> None:
        """Judge a file.

        Args:
            name: of the file, for messages.
            units: of its numbers.
            next_frame: the number of the frame in the source that follows it.
        """
        found = self._magnitudes
        self.consistency.end_file(next_frame)
        if self.consistency.is_contradiction:  # found now, or at a block of this file
            self._tell(name, units)
        if found.n >= FEW or found.is_impossible(units):
            self._judge(name, found, units)
        else:
            self._small.setdefault(units, Magnitudes()).merge(found)
        self._magnitudes = Magnitudes()

    def end(self, name: str, units: Units) -> None:
        """Judge what is left, at the end of a source of that name whose last file is in these units."""
        self._tell(name, units)
        for own, found in self._small.items():
            self._judge(name, found, own)

    def _tell(self, name: str, units: Units) -> None:
        """Take down, once, that energies do not fit the forces, if so."""
        if not self._is_told:
            lines = self.consistency.contradictions(units)
            self.contradictions += [f"{name}: {text}" for text in lines]
            self._is_told = bool(lines)

    def _judge(self, name: str, found: Magnitudes, units: Units) -> None:
        self.contradictions += [f"{name}: {text}" for text in found.contradictions(units)]
        self.warnings += [f"{name}: {text}" for text in found.warnings(units)]
