"""Where a model's energy shifts come from."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from ase.data import atomic_numbers, chemical_symbols

from forgefield.config.evaluation import StatisticsConfig
from forgefield.data.store import Store
from forgefield.errors import UserError
from forgefield.models.potential import Potential

FIT_TO_ENERGIES = "fit to the energies"
FIT_TO_RESIDUAL = "fit to what the model's energies leave"


class Given(NamedTuple):
    """Energy shifts that are not fitted: atomic number -> eV, and where they are from."""

    shifts: dict[int, float]
    origin: str


def given_shifts(config: StatisticsConfig, store: Store, potential: Potential) -> Given | None:
    """The shifts that the config asks for and that need no fit; None where they are to be fitted.

    Raises:
        UserError: they lack an element of the data.
    """
    choice = config.energy_shifts
    isolated = _isolated_atoms(store)
    complete = all(chemical_symbols[z] in isolated for z in store.elements)
    if choice == "fit" or (choice == "auto" and (potential.pretrained or not complete)):
        return None
    if isinstance(choice, dict):
        shifts, origin, where = choice, "the configuration", "statistics.energy_shifts"
    else:
        shifts, origin, where = isolated, "isolated atoms", f"{store.path}: isolated atoms in the source"
    if lacking := [chemical_symbols[z] for z in store.elements if chemical_symbols[z] not in shifts]:
        symbols = ", ".join(lacking)
        raise UserError(
            f"{where}: none for {symbols}, which the data has; add it, or set statistics.energy_shifts: fit"
        )
    numbers = {atomic_numbers[symbol]: energy for symbol, energy in shifts.items()}
    return Given({z: numbers[z] for z in potential.elements if z in numbers}, origin)


def _isolated_atoms(store: Store) -> Mapping[str, float]:
    """eV by chemical symbol, as the conversion found them."""
    return json.loads(store.attributes.get("isolated_atoms", "{}")).get("energies", {})
