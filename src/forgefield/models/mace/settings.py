"""The hyperparameters of a MACE model, stored as ``config`` of its potential."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

InteractionName = Literal["RealAgnosticInteractionBlock", "RealAgnosticResidualInteractionBlock"]

# e3nn's normalization of SiLU to unit second moment under a normal input, a Monte Carlo estimate that weights rely on
SILU_FACTOR = 1.6791767923989418


class MaceSettings(BaseModel):
    """Hyperparameters and the three statistics of the training set that scale a model.

    Attributes:
        r_max: cutoff, Å.
        hidden_channels: scalar features C of each atom.
        l_max: largest degree of the spherical harmonics.
        correlation: body order of each layer's product, 1 to 3; its length is the number of layers.
        interactions: mace-torch's name of each layer's interaction block.
        n_bessel: radial basis functions.
        polynomial_cutoff: exponent p of the cutoff polynomial.
        radial_mlp: widths of the hidden layers between radial basis and convolution weights.
        mlp_channels: hidden width of the last readout.
        avg_num_neighbors: what sums over neighbors are divided by.
        scale, shift: eV; an atom's energy is scale x readout + shift.
        silu_factor: constant that multiplies every SiLU.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    r_max: float
    hidden_channels: int
    l_max: int
    correlation: tuple[int, ...]
    interactions: tuple[InteractionName, ...]
    n_bessel: int
    polynomial_cutoff: int
    radial_mlp: tuple[int, ...]
    mlp_channels: int
    avg_num_neighbors: float = 1.0
    scale: float = 1.0
    shift: float = 0.0
    silu_factor: float = SILU_FACTOR

    @property
    def n_layers(self) -> int:
        return len(self.correlation)
