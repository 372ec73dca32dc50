"""mace-torch's names of arrays, kept by every model whatever library computes it."""

RADIAL = "radial_embedding.bessel_fn."
TRANSFORM = "radial_embedding.distance_transform."
REPULSION = "pair_repulsion_fn."


def contraction_name(layer: int, degree: int) -> str:
    """The prefix of what belongs to the product of one layer with results of one degree."""
    return f"products.{layer}.symmetric_contractions.contractions.{degree}."


def buffer_name(layer: int, degree: int, order: int) -> str:
    return f"{contraction_name(layer, degree)}U_matrix_{order}"


def weight_name(layer: int, degree: int, order: int, correlation: int) -> str:
    """mace-torch calls the highest order's weights ``weights_max`` and counts the others downwards."""
    suffix = "weights_max" if order == correlation else f"weights.{correlation - 1 - order}"
    return contraction_name(layer, degree) + suffix
