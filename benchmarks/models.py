"""The models that are timed: random weights, identical on both sides."""

import re

from forgefield.models.mace.initial import initial_potential
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.potential import Potential

MODELS = ("32x0e", "64x0e", "128x0e", "64x0e+64x1o", "128x0e+128x1o")
R_MAX, N_LAYERS, SEED = 5.0, 2, 0


def model_name(text: str) -> str:
    """The name of a model, checked.

    Raises:
        ValueError: it is no such name as 64x0e or 64x0e+64x1o.
    """
    if not re.fullmatch(r"(\d+)x0e(\+\1x1o)?", text):
        raise ValueError(text)
    return text


def potential(name: str, elements: tuple[int, ...], avg_num_neighbors: float) -> Potential:
    """A model with random weights, named by its hidden features."""
    settings = MaceSettings(
        r_max=R_MAX,
        hidden_channels=int(name.split("x")[0]),
        # the last layer's features are read out as energies, for which scalars suffice
        hidden_l_max=(int(name.endswith("1o")), 0),
        l_max=3,
        correlation=(3,) * N_LAYERS,
        interactions=("RealAgnosticResidualInteractionBlock",) * N_LAYERS,
        n_bessel=8,
        polynomial_cutoff=5,
        radial_mlp=(64, 64, 64),
        mlp_channels=16,
        avg_num_neighbors=avg_num_neighbors,
    )
    return initial_potential(elements, settings, SEED)
