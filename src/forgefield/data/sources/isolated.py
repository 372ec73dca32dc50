"""The energies of isolated atoms among the frames of a source, which are energy shifts and no training data."""

import math

from ase.data import chemical_symbols

DIFFERENT = 1e-3  # eV; atoms of one element in other spin states or basis sets


class IsolatedAtoms:
    """The energies of single atoms.

    Attributes:
        energies: atomic number -> eV, the lowest where there are several.
    """

    def __init__(self) -> None:
        self.energies: dict[int, float] = {}
        self._different, self._unknown = set[int](), set[int]()

    def add(self, number: int, energy: float) -> None:
        """Take in an atom; one of no element or without a finite energy (eV) is passed over."""
        if not 0 < number < len(chemical_symbols):
            return
        if not math.isfinite(energy):
            self._unknown.add(number)
            return
        before = self.energies.setdefault(number, energy)
        if abs(before - energy) > DIFFERENT:
            self._different.add(number)
        self.energies[number] = min(before, energy)

    def warnings(self) -> list[str]:
        """Lines that name the elements with several energies, and those with one that is NaN or infinite."""
        texts = {
            "isolated atoms with several energies: {}; the lowest is taken": self._different,
            "isolated atoms with energies that are NaN or infinite: {}; they are not used": self._unknown,
        }
        return [text.format(", ".join(chemical_symbols[z] for z in sorted(of))) for text, of in texts.items() if of]

    def by_symbol(self) -> dict[str, float]:
        """Chemical symbol -> eV."""
        return {chemical_symbols[z]: energy for z, energy in sorted(self.energies.items())}
