"""From rows as a store holds them to structures."""

from collections.abc import Mapping, Sequence

import numpy as np

from forgefield.data.structures import Structure
from forgefield.units import Factors

WEIGHTS = ("U_weight", "F_weight", "virial_weight")


def to_structures(values: Mapping[str, np.ndarray], factors: Factors, extra: Sequence[str] = ()) -> list[Structure]:
    """Structures without padding, from the datasets' rows (b, ...); a label whose weight is 0 is None.

    Args:
        values: by dataset, without ``mask``.
        factors: by which the rows' numbers are multiplied, to eV and Å.
        extra: datasets whose rows become further values, as stored.
    """
    zeros = np.zeros(len(values["U"]))
    weights = [values.get(key, zeros).tolist() for key in WEIGHTS]
    scalars = (values["n_atoms"].tolist(), values["source_index"].tolist(), (values["U"] * factors.energy).tolist())
    cells, pbc = values["box"].astype(np.float64) * factors.length, values["pbc"].astype(bool)
    return [
        Structure(
            numbers=values["species"][i, :n].astype(np.int64),
            positions=np.multiply(values["R"][i, :n], factors.length, dtype=np.float64),
            cell=cells[i],
            pbc=pbc[i],
            energy=energy if energy_weight else None,
            forces=np.multiply(values["F"][i, :n], factors.forces, dtype=np.float64) if forces_weight else None,
            virial=values["virial"][i].astype(np.float64) * factors.virial if virial_weight else None,
            energy_weight=energy_weight,
            forces_weight=forces_weight,
            virial_weight=virial_weight,
            source_index=index,
            extra={key: values[key][i] for key in extra},
        )
        for i, (n, index, energy, energy_weight, forces_weight, virial_weight) in enumerate(
            zip(*scalars, *weights, strict=True)
        )
    ]
