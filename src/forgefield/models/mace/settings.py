"""The hyperparameters of a MACE model, stored as ``config`` of its potential."""

from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

# mace-torch's names
InteractionName = Literal[
    "RealAgnosticInteractionBlock",
    "RealAgnosticResidualInteractionBlock",
    "RealAgnosticDensityInteractionBlock",
    "RealAgnosticDensityResidualInteractionBlock",
    "RealAgnosticAttResidualInteractionBlock",
    "RealAgnosticResidualNonLinearInteractionBlock",
]
ReadoutName = Literal["LinearReadoutBlock", "NonLinearReadoutBlock", "NonLinearBiasReadoutBlock"]

# what evaluates couplings: our own code, or cuEquivariance
Kernels = Literal["reference", "cuequivariance"]

# e3nn's normalization of an activation to unit second moment under a normal input, Monte Carlo estimates that weights
# rely on
SILU_FACTOR, SIGMOID_FACTOR = 1.6791767923989418, 1.8467055342154763


class Path(NamedTuple):
    """A term of the convolution: degrees of the neighbor's features, of the harmonic, and of the message."""

    source: int
    harmonic: int
    message: int


class Layer(NamedTuple):
    """What one layer of a model is made of.

    Attributes:
        index: from 0.
        interaction: mace-torch's name of the block.
        correlation: highest order of the product.
        input_l_max, output_l_max: largest degree of the features that enter and leave.
        source_channels, source_l_max: of what neighbors send.
        paths: terms of the convolution, in the order of their weights.
        kernels: what evaluates it.
    """

    index: int
    interaction: str
    correlation: int
    input_l_max: int
    output_l_max: int
    source_channels: int
    source_l_max: int
    paths: tuple[Path, ...]
    kernels: Kernels = "reference"

    @property
    def residual(self) -> bool:
        return "Residual" in self.interaction


class MaceSettings(BaseModel):
    """Hyperparameters and the three statistics of the training set that scale a model.

    Attributes:
        r_max: cutoff, Å.
        hidden_channels: channels C of each atom's features.
        hidden_l_max: for each layer, the largest degree of the features it gives, of natural parity; scalars if empty.
        l_max: largest degree of the spherical harmonics.
        correlation: body order of each layer's product; its length is the number of layers.
        interactions: mace-torch's name of each layer's interaction block.
        source_channels, source_l_max: for each layer, what neighbors send; if empty, as the features that enter.
        agnostic_product: whether all elements share the weights of the product.
        n_bessel: radial basis functions, whatever their type.
        radial_type: kind of radial basis functions.
        distance_transform: mace-torch's transform of distances by covalent radii.
        polynomial_cutoff: exponent p of the cutoff polynomial.
        apply_cutoff: whether the cutoff multiplies the radial basis; otherwise it multiplies the convolution weights.
        pair_repulsion: whether the ZBL potential is added.
        radial_mlp: widths of the hidden layers between radial basis and convolution weights.
        readouts: mace-torch's name of each readout; a single one reads the last layer.
        mlp_channels: hidden width of a non-linear readout.
        gate: activation of non-linear readouts.
        avg_num_neighbors: what sums over neighbors are divided by.
        scale, shift: eV; an atom's energy is scale x (readouts + repulsion) + shift.
        silu_factor, gate_factor: constants that multiply every SiLU, and every activation of a readout.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    r_max: PositiveFloat
    hidden_channels: PositiveInt
    hidden_l_max: tuple[NonNegativeInt, ...] = ()
    l_max: NonNegativeInt
    correlation: Annotated[tuple[PositiveInt, ...], Field(min_length=1)]
    interactions: tuple[InteractionName, ...]
    source_channels: tuple[PositiveInt, ...] = ()
    source_l_max: tuple[NonNegativeInt, ...] = ()
    agnostic_product: bool = False
    n_bessel: PositiveInt
    radial_type: Literal["bessel", "gaussian", "chebyshev"] = "bessel"
    distance_transform: Literal["Agnesi", "Soft"] | None = None
    polynomial_cutoff: PositiveInt
    apply_cutoff: bool = True
    pair_repulsion: bool = False
    radial_mlp: tuple[PositiveInt, ...]
    readouts: tuple[ReadoutName, ...] = ()
    mlp_channels: PositiveInt
    gate: Literal["silu", "tanh", "abs"] | None = "silu"
    avg_num_neighbors: float = 1.0
    scale: float = 1.0
    shift: float = 0.0
    silu_factor: float = SILU_FACTOR
    gate_factor: float = SILU_FACTOR

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Write out what is given by the number of layers."""
        n = self.n_layers
        into = (0, *(self.hidden_l_max or (0,) * n))[:n]
        readouts = ("LinearReadoutBlock",) * max(n - 1, 1) + ("NonLinearReadoutBlock",) * (n > 1)
        defaults = {
            "hidden_l_max": (0,) * n,
            "source_channels": (self.hidden_channels,) * n,
            "source_l_max": into,
            "readouts": readouts,
        }
        for name, value in defaults.items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)
        for name in ("interactions", "hidden_l_max", "source_channels", "source_l_max"):
            if len(getattr(self, name)) != n:
                raise ValueError(f"{name} has {len(getattr(self, name))} entries, expected {n}, as correlation has")
        if len(self.readouts) not in (1, n):
            raise ValueError(f"readouts has {len(self.readouts)} entries, expected {n} or 1")
        return self

    @property
    def n_layers(self) -> int:
        return len(self.correlation)

    @property
    def layers(self) -> tuple[Layer, ...]:
        into = (0, *self.hidden_l_max)
        return tuple(
            Layer(
                i,
                self.interactions[i],
                self.correlation[i],
                into[i],
                self.hidden_l_max[i],
                self.source_channels[i],
                self.source_l_max[i],
                convolution_paths(self.source_l_max[i], self.l_max),
            )
            for i in range(self.n_layers)
        )


def convolution_paths(source_l_max: int, l_max: int) -> tuple[Path, ...]:
    """Couplings of natural parity (an even sum of degrees) in mace-torch's order: by the message's degree first."""
    paths = [
        Path(source, harmonic, message)
        for source in range(source_l_max + 1)
        for harmonic in range(l_max + 1)
        for message in range(abs(source - harmonic), min(source + harmonic, l_max) + 1, 2)
    ]
    return tuple(sorted(paths, key=lambda path: path.message))
