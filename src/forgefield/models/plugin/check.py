"""The check that a user's module does what the rest relies on."""

from dataclasses import replace
from typing import Any

import numpy as np

from forgefield.errors import UserError
from forgefield.models.inference import predict
from forgefield.models.potential import Potential
from forgefield.models.samples import sample_structures

TOLERANCE = 1e-8


def check_plugin(where: str, potential: Potential) -> dict[str, Any]:
    """Compute sample structures all at once and one by one, in float64.

    Raises:
        UserError: energies or forces depend on what else is in a batch, or are no numbers.
    """
    structures = sample_structures(potential.elements)
    potential = replace(potential, energy_shifts=dict.fromkeys(potential.elements, 0.0))
    try:
        together = list(predict(potential, structures, wanted="virial"))
        alone = list(predict(potential, structures, wanted="virial", batch=1))
    except UserError as error:
        raise UserError(f"{where}: on sample structures: {error}") from None
    largest = 0.0
    for structure, one, other in zip(structures, together, alone, strict=True):
        for quantity in ("energy", "forces"):
            expected = getattr(other, quantity)
            scale = max(np.abs(expected).max(), 1.0)
            difference = float(np.abs(getattr(one, quantity) - expected).max() / scale)
            if not difference <= TOLERANCE:
                raise UserError(
                    f"{where}: the {quantity} of sample structure {structure.source_index} changes by {difference:.1e} "
                    "relative with what else is in the batch; sum over each structure's own atoms, by atom_structure"
                )
            largest = max(largest, difference)
    return {
        "check": "each structure in a batch and alone, float64",
        "structures": len(structures),
        "relative_difference": largest,
        "relative_tolerance": TOLERANCE,
    }
