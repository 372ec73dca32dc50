"""Repulsion of atoms that are closer than their covalent radii allow."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from forgefield.models.mace.names import REPULSION
from forgefield.models.mace.radial import covalent_radii, cutoff_polynomial

# mace-torch's rounded constants: Bohr radius in Å, Coulomb constant in eV Å
BOHR, COULOMB = 0.529, 14.3996
DECAYS = (3.2, 0.9423, 0.4028, 0.2016)


def pair_repulsion(distances: jax.Array, pair_numbers: jax.Array, buffers: Mapping[str, np.ndarray]) -> jax.Array:
    """The screened nuclear repulsion of Ziegler, Biersack and Littmark, cut off at the sum of covalent radii.

    Args:
        distances: (P,) Å.
        pair_numbers: (2, P) atomic numbers of each pair.
        buffers: mace-torch's buffers by name.

    Returns:
        (P,) eV, half of each pair's energy: the share of each of its atoms.
    """
    named = {name: np.asarray(buffers[REPULSION + name], distances.dtype) for name in ("c", "a_exp", "a_prefactor")}
    charges = pair_numbers.astype(distances.dtype)
    length = named["a_prefactor"] * BOHR / jnp.sum(charges ** named["a_exp"], axis=0)
    screening = sum(c * jnp.exp(-decay * distances / length) for c, decay in zip(named["c"], DECAYS, strict=True))
    reach = jnp.sum(covalent_radii(pair_numbers, buffers[REPULSION + "covalent_radii"], distances), axis=0)
    envelope = cutoff_polynomial(distances / reach, int(buffers[REPULSION + "p"]))
    return 0.5 * COULOMB * charges[0] * charges[1] / distances * screening * envelope
