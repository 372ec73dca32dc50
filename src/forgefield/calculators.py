"""A trained potential as an ASE calculator."""

from pathlib import Path
from typing import Any

import numpy as np
from ase import Atoms
from ase.calculators.calculator import Calculator, all_changes
from ase.stress import full_3x3_to_voigt_6_stress

from forgefield.data.structures import Structure
from forgefield.models.inference import Predictor
from forgefield.models.potential import load_potential


class ForgefieldCalculator(Calculator):
    """Energy, forces and stress in eV, eV/Å and eV/Å^3 of molecules and periodic cells of any size.

    The first call compiles a MACE model, which takes seconds; so does a later one for a larger or much smaller
    structure.

    Args:
        model_dir: directory of a potential, such as ``results/runs/NAME/model``.
        precision: ``float64``, or ``float32``, which is faster and good to about 1e-4 eV/Å.

    Raises:
        UserError: no potential there or, on calculation, no atoms, an element that it does not know, or a position or
            result that is not finite.
    """

    implemented_properties = ("energy", "free_energy", "forces", "stress")

    def __init__(self, model_dir: Path | str, precision: str = "float64", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.potential = load_potential(model_dir)
        # its shapes leave room for changing neighbor counts, so that dynamics compiles few times
        self._predictor = Predictor(self.potential, batch=1, precision=precision, wanted="virial")

    def calculate(
        self, atoms: Atoms | None = None, properties: Any = ("energy",), system_changes: Any = all_changes
    ) -> None:
        """Fill ``results``; stress only where there is a periodic cell with a volume, by which virials are divided."""
        super().calculate(atoms, properties, system_changes)
        (prediction,) = self._predictor(
            [Structure(self.atoms.numbers, self.atoms.positions, np.array(self.atoms.cell), self.atoms.pbc)]
        )
        self.results = {
            "energy": prediction.energy,
            "free_energy": prediction.energy,
            "forces": prediction.forces,
        }
        if prediction.stress is not None:
            self.results["stress"] = full_3x3_to_voigt_6_stress(prediction.stress)
