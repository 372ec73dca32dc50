"""From sums of errors to metrics, whichever engine summed them."""

from collections.abc import Mapping


def metrics(sums: Mapping[str, float], n_structures: int) -> dict[str, float]:
    """Means from added-up error sums: ``loss`` and MAE and RMSE of each label that the data have.

    Args:
        sums: ``loss``, and for each label ``LABEL_abs``, ``LABEL_sq`` and ``LABEL_count``, over all structures.
        n_structures: how many they are.

    Returns:
        ``energy_*`` in eV/atom, ``forces_*`` in eV/Å, ``virial_*`` in eV/atom, others in their labels' own units.
    """
    out = {"loss": sums["loss"] / n_structures}
    for name in (key.removesuffix("_count") for key in sums if key.endswith("_count")):
        if count := sums[f"{name}_count"]:
            out[f"{name}_mae"] = sums[f"{name}_abs"] / count
            out[f"{name}_rmse"] = (sums[f"{name}_sq"] / count) ** 0.5
    return out
