"""Which mace-torch models can be imported; every other kind is refused by name."""

from collections.abc import Iterator
from typing import Any

import torch

from forgefield.errors import UserError

INTERACTIONS = ("RealAgnosticInteractionBlock", "RealAgnosticResidualInteractionBlock")
UNSUPPORTED_PARTS = ("pair_repulsion", "joint_embedding", "embedding_readout", "lora")
UNSUPPORTED_OPTIONS = ("use_agnostic_product", "use_so3", "use_last_readout_only", "use_edge_irreps_first")


def check_supported(module: torch.nn.Module) -> None:
    """Raise a UserError that names the first part of the model that has no counterpart here."""
    reason = next(_unsupported(module), None)
    if reason:
        raise UserError(f"this mace-torch model cannot be imported: {reason}; choose a foundation model without it")


def _unsupported(module: torch.nn.Module) -> Iterator[str]:
    name = type(module).__name__
    if name not in ("MACE", "ScaleShiftMACE"):
        yield f"its class is {name}, expected MACE or ScaleShiftMACE"
        return
    heads = list(getattr(module, "heads", None) or ["Default"])
    if len(heads) > 1:
        yield f"it has {len(heads)} heads ({', '.join(map(str, heads))}), expected one"
    yield from (f"it has {part}" for part in UNSUPPORTED_PARTS if hasattr(module, part))
    yield from (f"it was built with {option}" for option in UNSUPPORTED_OPTIONS if getattr(module, option, False))
    if getattr(module, "edge_irreps", None) is not None:
        yield "it was built with edge_irreps"
    yield from _unsupported_radial(module.radial_embedding)
    for block in module.interactions:
        yield from _unsupported_interaction(block)
    for product in module.products:
        yield from _unsupported_product(product)
    yield from _unsupported_readouts(list(module.readouts))


def _unsupported_radial(radial: Any) -> Iterator[str]:
    basis = type(radial.bessel_fn).__name__
    if basis != "BesselBasis":
        yield f"its radial basis is {basis}, expected BesselBasis"
    if list(radial.parameters()):
        yield "its radial basis is trainable"
    if hasattr(radial, "distance_transform"):
        yield f"it has the distance transform {type(radial.distance_transform).__name__}"
    if not getattr(radial, "apply_cutoff", True):
        yield "it was built with apply_cutoff=False"


def _unsupported_interaction(block: Any) -> Iterator[str]:
    name = type(block).__name__
    if name not in INTERACTIONS:
        yield f"its interaction block is {name}, expected {' or '.join(INTERACTIONS)}"
    for option in ("cueq_config", "oeq_config"):
        if getattr(getattr(block, option, None), "enabled", False):
            yield f"it was converted for an accelerator ({option}); convert it back to e3nn"
    if type(block.conv_tp_weights).__name__ != "FullyConnectedNet":
        yield f"its radial network is {type(block.conv_tp_weights).__name__}, expected FullyConnectedNet"
    elif not _is_silu(block.conv_tp_weights.layer0.act.f):
        yield "the activation of its radial network is not SiLU"


def _unsupported_product(product: Any) -> Iterator[str]:
    irreps = product.linear.irreps_out
    if not all(ir.l == 0 and ir.p == 1 for _, ir in irreps):
        yield f"its hidden features are {irreps}, expected scalars (0e) only"
    contraction = product.symmetric_contractions
    if hasattr(contraction, "contractions") and contraction.contractions[0].correlation > 3:
        yield f"its correlation is {contraction.contractions[0].correlation}, expected at most 3"


def _unsupported_readouts(readouts: list[Any]) -> Iterator[str]:
    for i, readout in enumerate(readouts):
        last = len(readouts) > 1 and i == len(readouts) - 1
        expected = "NonLinearReadoutBlock" if last else "LinearReadoutBlock"
        if type(readout).__name__ != expected:
            yield f"readout {i} is {type(readout).__name__}, expected {expected}"
        elif last and not _is_silu(readout.non_linearity.acts[0].f):
            yield "the activation of its last readout is not SiLU"


def _is_silu(function: Any) -> bool:
    return isinstance(function, torch.nn.SiLU) or getattr(function, "__name__", "") == "silu"
