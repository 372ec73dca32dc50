"""The hyperparameters of a mace-torch model."""

from typing import Any

from forgefield.models.mace.settings import SILU_FACTOR, MaceSettings
from forgefield.models.mace.torch_checks import RADIAL_TYPES, TRANSFORMS, correlation
from forgefield.models.mace.torch_heads import heads_of
from forgefield.models.mace.torch_names import irreps_terms, natural
from forgefield.models.mace.torch_readouts import NONLINEAR, readout_activation

DEFAULT_RADIAL_MLP = (64, 64, 64)


def read_settings(module: Any, scale: float, shift: float) -> MaceSettings:
    """Settings of a supported model; ``scale`` and ``shift`` are those of the chosen head."""
    radial, blocks, readouts = module.radial_embedding, list(module.interactions), list(module.readouts)
    hidden = [natural(product.linear.irreps_out) for product in module.products]
    sources = [natural(block.linear_up.irreps_out) for block in blocks]
    contractions = [product.symmetric_contractions.contractions[0] for product in module.products]
    nonlinear = readouts[-1] if type(readouts[-1]).__name__ in NONLINEAR else None
    return MaceSettings(
        r_max=float(module.r_max),
        hidden_channels=hidden[0].channels,
        hidden_l_max=tuple(irreps.l_max for irreps in hidden),
        l_max=int(len(contractions[0].U_matrix_1) ** 0.5) - 1,
        correlation=tuple(map(correlation, contractions)),
        interactions=tuple(type(block).__name__ for block in blocks),
        source_channels=tuple(irreps.channels for irreps in sources),
        source_l_max=tuple(irreps.l_max for irreps in sources),
        agnostic_product=bool(getattr(module.products[0], "use_agnostic_product", False)),
        n_bessel=_radial_functions(radial.bessel_fn),
        radial_type=RADIAL_TYPES[type(radial.bessel_fn).__name__],
        distance_transform=TRANSFORMS.get(type(getattr(radial, "distance_transform", None)).__name__),
        polynomial_cutoff=int(radial.cutoff_fn.p),
        apply_cutoff=bool(getattr(radial, "apply_cutoff", True)),
        pair_repulsion=hasattr(module, "pair_repulsion_fn"),
        radial_mlp=_radial_mlp(blocks),
        readouts=tuple(type(readout).__name__ for readout in readouts),
        mlp_channels=16 if nonlinear is None else _width(nonlinear) // len(heads_of(module)),
        gate="silu" if nonlinear is None else readout_activation(nonlinear),
        avg_num_neighbors=float(blocks[0].avg_num_neighbors),
        scale=scale,
        shift=shift,
        silu_factor=_silu_factor(blocks),
        gate_factor=_gate_factor(nonlinear),
    )


def _radial_functions(basis: Any) -> int:
    name = {"BesselBasis": "bessel_weights", "GaussianBasis": "gaussian_weights", "ChebychevBasis": "n"}
    return getattr(basis, name[type(basis).__name__]).numel()


def _radial_mlp(blocks: list[Any]) -> tuple[int, ...]:
    """Attention blocks have widths of their own."""
    networks = [block.conv_tp_weights for block in blocks if "Att" not in type(block).__name__]
    return tuple(networks[0].hs[1:-1]) if networks else DEFAULT_RADIAL_MLP


def _width(readout: Any) -> int:
    """Hidden features of a readout, of all heads together."""
    return sum(mul for mul, _, _ in irreps_terms(readout.linear_1.irreps_out))


def _silu_factor(blocks: list[Any]) -> float:
    acts = [block.conv_tp_weights.layer0.act for block in blocks if hasattr(block.conv_tp_weights, "layer0")]
    return _factor(acts[0]) if acts and acts[0] is not None else SILU_FACTOR


def _gate_factor(readout: Any | None) -> float:
    act = None if readout is None else next(iter(readout.non_linearity.acts), None)
    return SILU_FACTOR if readout is None else _factor(act)


def _factor(act: Any | None) -> float:
    """What multiplies an activation, which e3nn leaves out where it is nearly 1."""
    return 1.0 if act is None or act._is_id else float(act.cst)
