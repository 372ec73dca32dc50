"""The fixed arrays that a model's results depend on."""

from forgefield.models.mace.names import RADIAL, REPULSION, TRANSFORM, buffer_name
from forgefield.models.mace.settings import MaceSettings

RADIAL_BUFFERS = {"bessel": ("bessel_weights", "prefactor"), "gaussian": ("gaussian_weights",), "chebyshev": ("n",)}
TRANSFORM_BUFFERS = {None: (), "Agnesi": ("q", "p", "a", "covalent_radii"), "Soft": ("alpha", "covalent_radii")}
REPULSION_BUFFERS = ("c", "p", "covalent_radii", "a_exp", "a_prefactor")
# mace-torch keeps the width of Gaussians apart from its buffers, in float64
COEFFICIENT = RADIAL + "coeff"


def mace_buffer_names(settings: MaceSettings) -> list[str]:
    """Names of those that mace-torch keeps as buffers."""
    names = [RADIAL + name for name in RADIAL_BUFFERS[settings.radial_type]]
    names += [TRANSFORM + name for name in TRANSFORM_BUFFERS[settings.distance_transform]]
    names += [REPULSION + name for name in REPULSION_BUFFERS if settings.pair_repulsion]
    return names + [
        buffer_name(layer.index, degree, order)
        for layer in settings.layers
        for degree in range(layer.output_l_max + 1)
        for order in range(1, layer.correlation + 1)
    ]


def buffer_names(settings: MaceSettings) -> list[str]:
    """Names of all of them."""
    return mace_buffer_names(settings) + [COEFFICIENT] * (settings.radial_type == "gaussian")
