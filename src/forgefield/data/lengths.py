"""Are lengths in the unit that they are said to be in? Nearest neighbors are about a sum of covalent radii apart."""

from array import array
from dataclasses import replace

import ase.data
import numpy as np

from forgefield.data.neighbors import nearest_atoms, neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.units import LENGTH_UNITS

# All in sums of two covalent radii. N2 has 0.77; solids at 1 TPa, but for those of SOFT, have more than 0.65.
IMPOSSIBLE, FAR = 0.5, 1.6
ONE_POINT = 0.05  # below which no calculation can have brought nuclei; short-range data have more
CLOSE, WIDE = (0.66, 0.8), (1.4, 1.25)  # that the median and nine tenths are beyond
FITTING = 0.75, 1.3
NOBLE_GASES = (2, 10, 18, 36, 54, 86)
# groups 1 and 2, lanthanides and actinides, which pressure makes half as wide; hydrogen in metals has no bonds
SOFT = np.r_[1, 3, 11, 19, 20, 37, 38, 55, 56, 87, 88, 57:72, 89:104]
# Lengths in a crystal are divided by these until neighbors are in reach, which a wrong unit puts 20 times too far.
# The steps are small, since pairs grow with the third power; where more than CROWD are in reach, the first are CROWDED.
SHRINKS, CROWDED, CROWD = (1, 2, 5, 20), (0.05, 0.2), 1000
FEW = 8  # nearest atoms among which that of the least ratio is
MOST = 100_000  # values of several files together


class Lengths:
    """Distances of nearest neighbors in some structures, in sums of two covalent radii; fed one by one, in Å."""

    def __init__(self) -> None:
        self._all, self._telling = array("d"), array("d")

    def add(self, structure: Structure) -> None:
        """Take in a structure. What pressure can bring together, or take apart, tells less of a unit."""
        is_counted = ~np.isin(structure.numbers, NOBLE_GASES)
        if len(structure) < 2 or not is_counted.any():
            return
        ratios = _nearest_over_radii(structure)
        is_telling = is_counted & ~np.isin(structure.numbers, SOFT if structure.pbc.any() else ())
        is_hydrogen = len(structure) > 2 and (structure.numbers == 1).all()  # as a metal, 1.6 radii apart
        if is_hydrogen or not is_counted.all():
            is_telling[:] = False
        self._all.frombytes(ratios[is_counted].tobytes())
        self._telling.frombytes(ratios[is_telling].tobytes())

    def merge(self, other: "Lengths") -> None:
        """Take in what another has measured, unless there is plenty."""
        if len(self._all) < MOST:
            self._all += other._all
            self._telling += other._telling

    @property
    def ratio(self) -> float:
        """The median; 1 where there are none."""
        return float(np.median(self._all)) if self._all else 1.0

    def is_impossible(self, unit: str) -> bool:
        """Whether nuclei are practically on one another, or nearer than bonds where another unit explains it."""
        return self.ratio <= ONE_POINT or (self.ratio <= IMPOSSIBLE and bool(self._fitting(unit)))

    def contradiction(self, unit: str) -> str | None:
        """A line where nuclei are on one another, or nearly all distances are odd and fit another unit."""
        telling = self._telling or [1.0]
        lowest, median, highest = np.quantile(telling, [0.1, 0.5, 0.9], method="nearest")  # some may be infinite
        is_odd = (median < CLOSE[0] and highest < CLOSE[1]) or (median > WIDE[0] and lowest > WIDE[1])
        return self._words(unit) if self.is_impossible(unit) or (is_odd and self._fitting(unit)) else None

    def warning(self, unit: str) -> str | None:
        """A line where they look odd, but could be true."""
        return None if CLOSE[0] < self.ratio < FAR or self.contradiction(unit) else self._words(unit)

    def _fitting(self, unit: str) -> dict[str, float]:
        """Other units and the ratio by them, the nearest to 1 first."""
        found = {other: self.ratio * value / LENGTH_UNITS[unit] for other, value in LENGTH_UNITS.items()}
        found = {other: ratio for other, ratio in found.items() if FITTING[0] < ratio < FITTING[1] and other != unit}
        return dict(sorted(found.items(), key=lambda item: abs(np.log(item[1]))))

    def _words(self, unit: str) -> str:
        found = ratio_text(self.ratio)
        fitting = " or ".join(f"{other} (by which it is {ratio:.2f})" for other, ratio in self._fitting(unit).items())
        return (
            f"lengths look wrong for {unit}: nearest neighbors are {found} times the sum of their covalent radii "
            f"apart, where 1 is usual; {f'{fitting} fits' if fitting else 'no unit known here fits'}; set units.length"
        )


def ratio_text(ratio: float) -> str:
    """A ratio for messages; infinite where neighbors were out of reach."""
    return f"{ratio:.2f}" if np.isfinite(ratio) else f"more than {FAR * SHRINKS[-1]:.0f}"


def _nearest_over_radii(structure: Structure) -> np.ndarray:
    """(n,) distance of each atom to the nearest other, over the sum of their radii; infinite if out of reach."""
    radii = ase.data.covalent_radii[structure.numbers]
    if not structure.pbc.any():
        distances, others = nearest_atoms(structure, min(FEW, len(structure) - 1))
        return (distances / (radii[:, None] + radii[others])).min(axis=1)
    nearest, reach = np.full(len(structure), np.inf), FAR * 2 * float(radii.max())
    in_reach = len(structure) * 4 / 3 * np.pi * reach**3  # neighbors, times the volume
    is_crowded = structure.pbc.all() and in_reach > CROWD * structure.volume
    for shrink in (*CROWDED, *SHRINKS) if is_crowded else SHRINKS:
        near = replace(structure, positions=structure.positions / shrink, cell=structure.cell / shrink)
        pairs = neighbor_pairs(near, reach)
        vectors = near.positions[pairs.receiver] - near.positions[pairs.sender] + pairs.shift
        ratios = shrink * np.linalg.norm(vectors, axis=1) / (radii[pairs.receiver] + radii[pairs.sender])
        np.minimum.at(nearest, pairs.receiver, ratios)
        np.minimum.at(nearest, pairs.sender, ratios)
        if (nearest < FAR * shrink).sum() > len(nearest) / 2:  # up to there, none nearer is out of reach
            break
    return nearest
