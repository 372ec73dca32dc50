"""Are energies, forces and lengths of a size that their units make plausible?"""

from array import array

import numpy as np

from forgefield.data.joined import Joined
from forgefield.data.lengths import Lengths
from forgefield.data.structures import Structure
from forgefield.units import ENERGY_UNITS, FORCE_UNITS, HARTREE, Units

HIGHEST_FORCE_RMS = 10.0  # eV/Å; by <F^2> = k T x force constant, even a C-H bond (31 eV/Å^2) would be at 37,000 K
LOW_FORCE_RMS = 0.1  # eV/Å; molecules at room temperature have about 1
LIKELY_FORCE_RMS = 0.1, 5.0
HIGHEST_ENERGY = 1.3  # of those of all electrons
EXACT = 1.008  # what all-electron calculations of first-row elements give of the semiclassical energy
Z = np.arange(119.0)
ALL_ELECTRON_ENERGIES = HARTREE * (
    -0.7687 * Z ** (7 / 3) + Z**2 / 2 - 0.2699 * Z ** (5 / 3)
)  # semiclassical, eV; see Magnitudes
EVERY = 1.25  # times as many structures are passed by until the next whose distances are measured


def magnitudes(joined: Joined) -> tuple[np.ndarray, np.ndarray]:
    """Each total energy over that of all electrons, and each structure's RMS of forces (eV/Å), where there are such."""
    ratios = joined.energies / joined.sums(ALL_ELECTRON_ENERGIES[joined.numbers])
    squares = joined.sums(np.vecdot(joined.forces, joined.forces)) / (3 * joined.sizes)
    return ratios[joined.has_energy], np.sqrt(squares[joined.has_forces])


class Magnitudes:
    """The sizes of energies, forces and lengths of structures in eV and Å. Fed with a few structures at a time.

    Three kinds of evidence, each of which a wrong unit word shows by a factor:

    * No total energy lies below that of all electrons, for which the semiclassical -0.7687 Z^(7/3) + Z^2 / 2 -
      0.2699 Z^(5/3) hartree for each atom is right to a few per cent (J. Schwinger, Phys. Rev. A 24, 2353, 1981).
      Energies in kcal/mol exceed it up to 23 times, those in kJ/mol up to 96 times.
    * Forces near equilibrium are below :data:`HIGHEST_FORCE_RMS`, in any material and at any temperature of interest.
    * Nearest neighbours are about the sum of two covalent radii apart, except for noble gases.

    Attributes:
        n: structures taken in.
        lengths: of some of them.
    """

    def __init__(self) -> None:
        self._energy_ratios = array("d")
        self._force_rms = array("d")
        self.lengths = Lengths()
        self.n, self._next = 0, 0

    def add(self, joined: Joined) -> None:
        """Take structures in (eV and Å)."""
        for i in np.flatnonzero(self.take(len(joined), *magnitudes(joined))):
            self.sample(joined.structures[i])

    def take(self, n: int, energy_ratios: np.ndarray, force_rms: np.ndarray) -> np.ndarray:
        """Take in what :func:`magnitudes` has found of ``n`` structures; (n,) which of them to :meth:`sample`."""
        self._energy_ratios.frombytes(energy_ratios.tobytes())
        self._force_rms.frombytes(force_rms.tobytes())
        is_wanted = np.zeros(n, bool)
        while self._next < self.n + n:
            is_wanted[self._next - self.n] = True
            self._next = int(self._next * EVERY) + 1
        self.n += n
        return is_wanted

    def sample(self, structure: Structure) -> None:
        """Measure the distances in a structure."""
        self.lengths.add(structure)

    def merge(self, other: "Magnitudes") -> None:
        """Take in the structures of another."""
        self._energy_ratios += other._energy_ratios
        self._force_rms += other._force_rms
        self.lengths.merge(other.lengths)
        self.n += other.n

    def is_impossible(self, units: Units) -> bool:
        """Whether they, read in these units, cannot be true, however few they are."""
        return (self.energy_ratio or 0) > HIGHEST_ENERGY or self.lengths.is_impossible(units.length)

    def contradictions(self, units: Units | None = None) -> list[str]:
        """One line for each of energies and forces together, and lengths, that contradict the units they were read in.

        Args:
            units: these; eV and Å without.
        """
        units = units or Units()
        energies = self._energies_too_large(units) or self._energies_too_small(units)
        return [text for text in (energies, self.lengths.contradiction(units.length)) if text]

    def warnings(self, units: Units | None = None) -> list[str]:
        """One line for lengths that look as if read in a wrong unit, and one for forces of 0; both could be true."""
        zero = (
            "all forces of most structures are 0; are they unknown? Leave them out then"
            if self.force_rms == 0
            else None
        )
        return [text for text in (self.lengths.warning((units or Units()).length), zero) if text]

    def _energies_too_small(self, units: Units) -> str | None:
        """Total energies that are those of all electrons in another unit, where forces are too small, too."""
        ratio, rms = self.energy_ratio, self.force_rms
        if ratio is None or rms is None or rms > LOW_FORCE_RMS:
            return None
        fits = [u for u, value in _relative(ENERGY_UNITS, units.energy) if abs(ratio * value / EXACT - 1) < 0.02]
        if not fits or ENERGY_UNITS[fits[0]] < 10 * ENERGY_UNITS[units.energy]:
            return None
        return (
            f"energies look too small for {units.energy}: total energies are {ratio:.4f} times those of all electrons "
            f"of the same atoms, and the forces' RMS is {rms:.2g} eV/Å; {fits[0]} fits; set units.energy"
        )

    def _energies_too_large(self, units: Units) -> str | None:
        evidence, ratio, rms = [], self.energy_ratio, self.force_rms
        if ratio is not None and ratio > HIGHEST_ENERGY:
            evidence.append(f"total energies are {ratio:.1f} times those of all electrons of the same atoms")
        if rms is not None and rms > HIGHEST_FORCE_RMS:
            evidence.append(f"the forces' RMS is {rms:.1f} eV/Å, where below {HIGHEST_FORCE_RMS:g} is expected")
        if not evidence:
            return None
        is_energy_sound = ratio is not None and (0.9 < ratio < 1.1 or (units.forces and ratio <= HIGHEST_ENERGY))
        if is_energy_sound or (units.forces and ratio is None):
            fits = _likely_forces(units, rms)
            return f"forces look too large for {units.name('forces')}: {evidence[0]}; {fits} fits; set units.forces"
        fits = self._fitting(units) or "no unit known here"
        return f"energies look too large for {units.energy}: {' and '.join(evidence)}; {fits} fits; set units.energy"

    def _fitting(self, units: Units) -> str:
        """The units of energy by which total energies are those of all electrons, else those that forces allow."""
        ratio, rms = self.energy_ratio, None if units.forces else self.force_rms
        others = _relative(ENERGY_UNITS, units.energy)
        exact = [unit for unit, value in others if ratio is not None and abs(ratio * value - 1) < 0.1]
        possible = [
            unit
            for unit, value in others
            if (ratio is None or ratio * value < HIGHEST_ENERGY)
            and (rms is None or LIKELY_FORCE_RMS[0] < rms * value < LIKELY_FORCE_RMS[1])
        ]
        return " or ".join(exact or possible)

    @property
    def energy_ratio(self) -> float | None:
        """Median of total energies over those of all electrons."""
        return float(np.median(self._energy_ratios)) if self._energy_ratios else None

    @property
    def force_rms(self) -> float | None:
        """Median of the structures' forces, eV/Å."""
        return float(np.median(self._force_rms)) if self._force_rms else None

    @property
    def bond_ratio(self) -> float:
        """Median of distances to the nearest neighbor over the sum of both covalent radii; 1 where there are none."""
        return self.lengths.ratio


def _relative(table: dict[str, float], unit: str) -> list[tuple[str, float]]:
    """All other units and what they would multiply numbers by that were read in ``unit``."""
    return [(other, value / table[unit]) for other, value in table.items() if other != unit]


def _likely_forces(units: Units, rms: float) -> str:
    """The unit that follows from those of energy and length, if forces had a usual size in it; else others that do."""
    declared, natural = units.name("forces"), f"{units.energy}/{units.length}"
    found = [
        other
        for other, value in _relative(FORCE_UNITS, declared)
        if (other.endswith(f"/{units.length}") or other == "hartree/bohr")
        and LIKELY_FORCE_RMS[0] < rms * value < LIKELY_FORCE_RMS[1]
    ]
    return natural if natural in found else " or ".join(found) or "no unit known here"
