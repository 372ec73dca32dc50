"""mace-torch's names of arrays, kept by every model whatever library computes it."""

BESSEL = "radial_embedding.bessel_fn."


def buffer_name(layer: int, order: int) -> str:
    return f"products.{layer}.symmetric_contractions.contractions.0.U_matrix_{order}"


def weight_name(layer: int, order: int, correlation: int) -> str:
    """mace-torch calls the highest order's weights ``weights_max`` and counts the others downwards."""
    suffix = "weights_max" if order == correlation else f"weights.{correlation - 1 - order}"
    return f"products.{layer}.symmetric_contractions.contractions.0.{suffix}"
