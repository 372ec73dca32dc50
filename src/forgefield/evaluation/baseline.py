"""What total energies are shown relative to: their mean, or what their composition tells of them."""

import numpy as np


def composition_fit(energies: np.ndarray, composition: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(elements,) the energies of single atoms that fit total energies best, in least squares.

    Where all structures have one composition, these sum up to the mean energy.

    Args:
        energies: (N,) eV, NaN where absent.
        composition: (N,) of each structure, counted from 0.
        counts: (compositions, elements) atoms of each element.
    """
    present = ~np.isnan(energies)
    structures = np.bincount(composition[present], minlength=len(counts))
    here = structures > 0
    means = np.bincount(composition[present], energies[present], len(counts))[here] / structures[here]
    weight = np.sqrt(structures[here])
    return np.linalg.lstsq(weight[:, None] * counts[here], weight * means, rcond=None)[0]
