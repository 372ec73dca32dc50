"""A trained potential as an ASE calculator."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from ase import Atoms
from ase.calculators.calculator import Calculator, all_changes
from ase.data import chemical_symbols
from ase.stress import full_3x3_to_voigt_6_stress

from forgefield.data.batching import PAIR_STEP, Capacity, needed_capacity, pack_graph, round_up, shift_energy
from forgefield.data.neighbors import neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.models.energy import energy_and_forces, energy_forces_virial, energy_function
from forgefield.models.potential import load_potential

HEADROOM = 1.2
"""Room for more neighbors than a structure has when its size is first met, so that dynamics seldom compiles again."""


class ForgefieldCalculator(Calculator):
    """Energy, forces and stress in eV, eV/Å and eV/Å^3 of molecules and periodic cells of any size.

    The first call for each number of atoms compiles the model, which takes seconds.

    Args:
        model_dir: directory of a potential, such as ``results/runs/NAME/model``.
        precision: ``float64``, or ``float32``, which is faster and good to about 1e-4 eV/Å.

    Raises:
        UserError: no potential there or, on calculation, an element that it does not know.
    """

    implemented_properties = ("energy", "free_energy", "forces", "stress")

    def __init__(self, model_dir: Path | str, precision: str = "float64", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.potential = load_potential(model_dir)
        self.precision = precision
        self._dtype = np.dtype(precision)
        self._capacities: dict[int, Capacity] = {}
        energy = energy_function(self.potential)
        self._forces = jax.jit(energy_and_forces(energy))
        self._forces_and_virial = jax.jit(energy_forces_virial(energy))
        self._parameters = {k: np.asarray(v, self._dtype) for k, v in self.potential.parameters.items()}

    def calculate(
        self, atoms: Atoms | None = None, properties: Any = ("energy",), system_changes: Any = all_changes
    ) -> None:
        """Fill ``results``; stress only where the cell is periodic."""
        super().calculate(atoms, properties, system_changes)
        structure = self._structure()
        pairs = neighbor_pairs(structure, self.potential.cutoff)
        capacity = self._capacity(structure, needed_capacity([structure], [pairs]))
        graph = pack_graph([structure], [pairs], self.potential.elements, self.potential.cutoff, capacity, self._dtype)
        periodic = structure.pbc.any() and structure.volume > 0
        with jax.enable_x64(True):
            outputs = jax.device_get((self._forces_and_virial if periodic else self._forces)(self._parameters, graph))
        energy = float(outputs[0][0]) + shift_energy(structure, self.potential.energy_shifts)
        self.results = {
            "energy": energy,
            "free_energy": energy,
            "forces": np.asarray(outputs[1][: len(structure)], np.float64),
        }
        if periodic:
            stress = -np.asarray(outputs[2][0], np.float64) / structure.volume
            self.results["stress"] = full_3x3_to_voigt_6_stress(stress)

    def _structure(self) -> Structure:
        unknown = sorted(set(self.atoms.numbers.tolist()) - set(self.potential.elements))
        if unknown:
            known = ", ".join(chemical_symbols[z] for z in self.potential.elements)
            raise UserError(
                f"the potential does not know {', '.join(chemical_symbols[z] for z in unknown)} (it knows {known}); "
                "train one on data with these elements"
            )
        return Structure(self.atoms.numbers, self.atoms.positions, np.array(self.atoms.cell), self.atoms.pbc)

    def _capacity(self, structure: Structure, needed: Capacity) -> Capacity:
        """The capacity in use for this number of atoms, enlarged where it no longer suffices."""
        known = self._capacities.get(needed.atoms, Capacity(1, needed.atoms, 0, 0))
        if not known.holds(needed):
            pairs, neighbors = int(HEADROOM * needed.pairs), int(HEADROOM * needed.neighbors) + 1
            if not structure.pbc.any():  # in a molecule, at most each atom with every other
                n = len(structure)
                pairs, neighbors = min(pairs, n * (n - 1) // 2 + 1), min(neighbors, max(n - 1, 1))
            enlarged = Capacity(1, needed.atoms, round_up(pairs, PAIR_STEP), neighbors)
            known = self._capacities[needed.atoms] = Capacity(*map(max, known, enlarged))
        return known
