"""Checks of structures and labels: what is impossible is refused, what is improbable is warned about."""

from array import array

import ase.data
import numpy as np
from scipy.spatial import cKDTree

from forgefield.data.joined import Joined
from forgefield.data.neighbors import is_flat, neighbor_pairs, periodic_box
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.units import ENERGY_UNITS, HARTREE

ONE_POINT = 0.01  # Å; the nearest nuclei of any molecule, those of H2, are 0.74 Å apart
HIGHEST_FORCE_RMS = 10.0  # eV/Å; by <F^2> = k T x force constant, even a C-H bond (31 eV/Å^2) would be at 37,000 K
ALL_ELECTRON_HARTREE = 1.008 / HARTREE  # of semiclassical energies in eV, see Magnitudes, for first-row elements
LOW_FORCE_RMS = 0.1  # eV/Å; molecules at room temperature have about 1
MOLAR = ("kcal/mol", "kJ/mol")
CLOSEST, FARTHEST = 0.5, 1.6  # times the sum of covalent radii; lengths in bohr read as Å are 1.89 times too large
NOBLE_GASES = (2, 10, 18, 36, 54, 86)
LARGEST = 1e30  # eV and Å; its square fits float64, and in any unit it fits float32
Z = np.arange(119.0)
ALL_ELECTRON_ENERGIES = HARTREE * (
    -0.7687 * Z ** (7 / 3) + Z**2 / 2 - 0.2699 * Z ** (5 / 3)
)  # semiclassical, eV; see Magnitudes
SAMPLE = 4  # structures whose bond lengths are looked at


def check_structure(structure: Structure, where: str) -> None:
    """Refuse what no calculation can have given.

    Args:
        structure: in eV and Å.
        where: file and frame, for messages.

    Raises:
        UserError: an unknown element, a number that is not finite or beyond all measure, a periodic direction without a
            cell vector, a flat cell, or two atoms on one point.
    """
    if structure.numbers.min() < 1 or structure.numbers.max() > 118:
        unknown = np.flatnonzero((structure.numbers < 1) | (structure.numbers > 118))
        number = structure.numbers[unknown[0]]
        raise UserError(
            f"{where}: atom {unknown[0]} is of no element (atomic number {number}); remove or repair this frame"
        )
    for name in ("positions", "cell", "energy", "forces", "virial"):
        value = getattr(structure, name)
        if value is not None and not np.abs(value).max() < LARGEST:  # a NaN is not below anything
            lost = ~(np.abs(value) < LARGEST)
            first = np.asarray(value)[lost][0]
            found = f"{first:.3g}, beyond all measure," if np.isfinite(first) else "NaN or infinite"
            atom = f" at atom {np.argwhere(lost)[0][0]}" if name in ("positions", "forces") else ""
            raise UserError(f"{where}: {name} {found}{atom}; remove or repair this frame")
    if is_flat(structure):
        cell = structure.cell.tolist()
        raise UserError(f"{where}: periodic along a direction without a cell vector in {cell}; set pbc or the cell")
    if len(pair := _atoms_on_one_point(structure)):
        raise UserError(f"{where}: atoms {pair[0]} and {pair[1]} are on one point; remove or repair this frame")


def _atoms_on_one_point(structure: Structure) -> np.ndarray:
    """(2,) indices of two atoms closer than :data:`ONE_POINT`, periodic images included; (0,) if there are none."""
    pbc = structure.pbc
    if not pbc.any():
        return cKDTree(structure.positions).query_pairs(ONE_POINT, output_type="ndarray")[:1].ravel()
    box = periodic_box(structure)
    scaled = structure.positions @ np.linalg.inv(box)
    scaled[:, pbc] %= 1.0
    scaled[scaled == 1.0] = 0.0  # -1e-20 % 1.0 is 1.0
    reach = ONE_POINT / np.linalg.svd(box, compute_uv=False).min()
    atoms = np.arange(len(scaled))
    for axis in np.flatnonzero(pbc):  # images of atoms at the cell's lower faces; a tree of a periodic box takes longer
        is_near = scaled[:, axis] < reach
        if is_near.any():
            scaled = np.concatenate([scaled, scaled[is_near] + np.eye(3)[axis]])
            atoms = np.concatenate([atoms, atoms[is_near]])
    pairs = cKDTree(scaled).query_pairs(reach, output_type="ndarray")
    apart = (scaled[pairs[:, 0]] - scaled[pairs[:, 1]]) @ box
    pairs = atoms[pairs[np.linalg.norm(apart, axis=1) < ONE_POINT]]
    return np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)[:1].ravel()


def magnitudes(joined: Joined) -> tuple[np.ndarray, np.ndarray]:
    """Each total energy over that of all electrons, and each structure's RMS of forces (eV/Å), where there are such."""
    ratios = joined.energies / joined.sums(ALL_ELECTRON_ENERGIES[joined.numbers])
    squares = joined.sums(np.vecdot(joined.forces, joined.forces)) / (3 * joined.sizes)
    return ratios[joined.has_energy], np.sqrt(squares[joined.has_forces])


class Magnitudes:
    """Are energies, forces and lengths of a size that eV and Å make plausible? Fed with a few structures at a time.

    Three kinds of evidence, each of which a wrong unit word shows by a factor:

    * No total energy lies below that of all electrons, for which the semiclassical -0.7687 Z^(7/3) + Z^2 / 2 -
      0.2699 Z^(5/3) hartree for each atom is right to a few per cent (J. Schwinger, Phys. Rev. A 24, 2353, 1981).
      Energies in kcal/mol exceed it up to 23 times, those in kJ/mol up to 96 times.
    * Forces near equilibrium are below :data:`HIGHEST_FORCE_RMS`, in any material and at any temperature of interest.
    * Nearest neighbours are about the sum of two covalent radii apart, except for noble gases.
    """

    def __init__(self) -> None:
        self._energy_ratios = array("d")
        self._force_rms = array("d")
        self._bond_ratios: list[float] = []
        self._sampled = 0

    def add(self, joined: Joined) -> None:
        """Take structures in (eV and Å)."""
        self.take(*magnitudes(joined))
        for structure in joined.structures:
            self.sample(structure)

    def take(self, energy_ratios: np.ndarray, force_rms: np.ndarray) -> None:
        """Take in what :func:`magnitudes` has found of structures."""
        self._energy_ratios.frombytes(energy_ratios.tobytes())
        self._force_rms.frombytes(force_rms.tobytes())

    @property
    def wants_sample(self) -> bool:
        """Whether more structures are to be sampled."""
        return self._sampled < SAMPLE

    def sample(self, structure: Structure) -> None:
        """Look at the bond lengths of a structure, if more are wanted."""
        if self.wants_sample and len(structure) > 1:
            self._sampled += 1
            self._bond_ratios += _nearest_over_radii(structure)

    def contradictions(self) -> list[str]:
        """One line for each of energies and forces together, and lengths, that are impossible in eV and Å."""
        lengths = self._length_warning() if self.bond_ratio <= CLOSEST else None
        return [text for text in (self._energies_too_large(), lengths) if text]

    def warnings(self) -> list[str]:
        """One line for each that looks as if read in a wrong unit, but could be true."""
        lengths = self._length_warning() if self.bond_ratio > CLOSEST else None
        return [text for text in (self._energies_in_hartree(), lengths) if text]

    def _energies_in_hartree(self) -> str | None:
        if not self._energy_ratios or not self._force_rms:
            return None
        ratio, rms = float(np.median(self._energy_ratios)), float(np.median(self._force_rms))
        if abs(ratio / ALL_ELECTRON_HARTREE - 1) > 0.02 or rms > LOW_FORCE_RMS:
            return None
        return (
            f"energies look too small for eV: total energies are {ratio:.4f} times those of all electrons of the same "
            f"atoms, and the forces' RMS is {rms:.2g} eV/Å; are they in hartree? Set units.energy"
        )

    def _energies_too_large(self) -> str | None:
        evidence = []
        if self._energy_ratios and (ratio := float(np.median(self._energy_ratios))) > 1.3:
            evidence.append(f"total energies are {ratio:.1f} times those of all electrons of the same atoms")
        if self._force_rms and (rms := float(np.median(self._force_rms))) > HIGHEST_FORCE_RMS:
            evidence.append(f"the forces' RMS is {rms:.1f} eV/Å, where below {HIGHEST_FORCE_RMS:g} is expected")
        if not evidence:
            return None
        fitting = [unit for unit in MOLAR if self._energy_ratios and abs(ratio * ENERGY_UNITS[unit] - 1) < 0.1]
        units = " or ".join(fitting or MOLAR)
        return f"energies look too large for eV: {' and '.join(evidence)}; are they in {units}? Set units.energy"

    @property
    def energy_ratio(self) -> float | None:
        """Median of total energies over those of all electrons."""
        return float(np.median(self._energy_ratios)) if self._energy_ratios else None

    @property
    def bond_ratio(self) -> float:
        """Median of distances to the nearest neighbor over the sum of both covalent radii; 1 where there are none."""
        return float(np.median(self._bond_ratios)) if self._bond_ratios else 1.0

    def _length_warning(self) -> str | None:
        ratio = self.bond_ratio
        if CLOSEST < ratio < FARTHEST:
            return None
        found = f"{ratio:.2f}" if np.isfinite(ratio) else f"more than {FARTHEST}"
        return (
            f"lengths look wrong for Å: nearest neighbors are {found} times the sum of their covalent radii apart; "
            "are they in nm or bohr? Set units.length"
        )


def _nearest_over_radii(structure: Structure) -> list[float]:
    """For each atom, distance to the nearest other over the sum of their covalent radii; infinite if out of reach."""
    radii = ase.data.covalent_radii[structure.numbers]
    pairs = neighbor_pairs(structure, FARTHEST * 2 * float(radii.max()))
    vectors = structure.positions[pairs.receiver] - structure.positions[pairs.sender] + pairs.shift
    ratios = np.linalg.norm(vectors, axis=1) / (radii[pairs.receiver] + radii[pairs.sender])
    nearest = np.full(len(structure), np.inf)
    np.minimum.at(nearest, pairs.receiver, ratios)
    np.minimum.at(nearest, pairs.sender, ratios)
    return nearest[~np.isin(structure.numbers, NOBLE_GASES)].tolist()
