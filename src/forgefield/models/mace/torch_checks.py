"""Which mace-torch models can be imported; every other kind is refused by name."""

from collections.abc import Iterator
from typing import Any, get_args

from forgefield.errors import UserError
from forgefield.models.mace.settings import InteractionName
from forgefield.models.mace.torch_messages import REFUSED
from forgefield.models.mace.torch_names import activation_name, irreps_text, natural
from forgefield.models.mace.torch_readouts import unsupported_readouts

INTERACTIONS = get_args(InteractionName)
RADIAL_TYPES = {"BesselBasis": "bessel", "GaussianBasis": "gaussian", "ChebychevBasis": "chebyshev"}
TRANSFORMS = {"AgnesiTransform": "Agnesi", "SoftTransform": "Soft"}
MAX_CORRELATION, MAX_L = 4, 4
CONVERTED = {
    "cueq_config": "it was converted for cuEquivariance; convert it back with mace_cueq_to_e3nn",
    "oeq_config": "it was converted for OpenEquivariance; convert it back with python -m mace.cli.convert_oeq_e3nn",
}

WRAPPERS = {
    "OptimizedModule": "a model compiled by torch.compile; save what it holds: torch.save(model._orig_mod, path)",
    "DataParallel": "a wrapper for several devices; save what it holds: torch.save(model.module, path)",
    "DistributedDataParallel": "a wrapper for several devices; save what it holds: torch.save(model.module, path)",
}


def check_supported(module: Any) -> None:
    """Raise a UserError that names the first part of the model that has no counterpart here."""
    reason = next(_unsupported(module), None)
    if reason:
        way_out = "" if ";" in reason else "; choose a foundation model without it"
        raise UserError(f"{REFUSED}: {reason}{way_out}")


def _unsupported(module: Any) -> Iterator[str]:
    name = type(module).__name__
    if name not in ("MACE", "ScaleShiftMACE"):
        yield f"its class is {name}, {WRAPPERS.get(name, 'expected MACE or ScaleShiftMACE')}"
        return
    if any("lora_" in name for name, _ in module.named_parameters()):
        yield "it has LoRA layers; merge them with mace.modules.lora.merge_lora_weights and save it again"
    yield from (f"it has {part}" for part in ("joint_embedding", "embedding_readout") if hasattr(module, part))
    if getattr(module, "use_so3", False):
        yield "it was built with use_so3"
    for block in (*module.interactions, *module.products):
        yield from (text for key, text in CONVERTED.items() if getattr(getattr(block, key, None), "enabled", False))
    yield from _unsupported_elements([int(z) for z in module.atomic_numbers])
    yield from _unsupported_radial(module)
    for product in module.products:
        yield from _unsupported_product(product)
    yield from _unsupported_interactions(list(module.interactions))
    yield from unsupported_readouts(module)


def _unsupported_elements(numbers: list[int]) -> Iterator[str]:
    if len(set(numbers)) < len(numbers) or not set(numbers) <= set(range(1, 119)):
        yield f"its atomic_numbers are {', '.join(map(str, numbers))}, expected different ones from 1 to 118"


def _unsupported_radial(module: Any) -> Iterator[str]:
    radial = module.radial_embedding
    r_max, of_polynomial = float(module.r_max), float(radial.cutoff_fn.r_max)
    if r_max != of_polynomial:
        yield f"its cutoffs disagree: r_max is {r_max}, radial_embedding.cutoff_fn.r_max is {of_polynomial}"
    basis = type(radial.bessel_fn).__name__
    if basis not in RADIAL_TYPES:
        yield f"its radial basis is {basis}, expected {', '.join(RADIAL_TYPES)}"
    if list(radial.parameters()):
        yield "its radial basis is trainable"
    transform = getattr(radial, "distance_transform", None)
    if transform is not None and type(transform).__name__ not in TRANSFORMS:
        yield f"its distance transform is {type(transform).__name__}, expected {', '.join(TRANSFORMS)}"
    repulsion = getattr(module, "pair_repulsion_fn", None)
    if repulsion is not None:
        if type(repulsion).__name__ != "ZBLBasis":
            yield f"its pair repulsion is {type(repulsion).__name__}, expected ZBLBasis"
        if list(repulsion.parameters()):
            yield "its pair repulsion is trainable"


def _unsupported_interactions(blocks: list[Any]) -> Iterator[str]:
    for block in blocks:
        name = type(block).__name__
        if name not in INTERACTIONS:
            yield f"its interaction block is {name}, expected {', '.join(INTERACTIONS)}"
            return
        if natural(block.linear_up.irreps_out) is None:
            yield f"neighbors send {irreps_text(block.linear_up.irreps_out)}, expected equally many of each degree"
        yield from _unsupported_network(block)
    averages = {float(block.avg_num_neighbors) for block in blocks}
    if len(averages) > 1:
        yield f"its layers differ in avg_num_neighbors ({', '.join(map(str, sorted(averages)))})"


def _unsupported_network(block: Any) -> Iterator[str]:
    expected = "RadialMLP" if "NonLinear" in type(block).__name__ else "FullyConnectedNet"
    if type(block.conv_tp_weights).__name__ != expected:
        yield f"its radial network is {type(block.conv_tp_weights).__name__}, expected {expected}"
    elif expected == "FullyConnectedNet":
        act = block.conv_tp_weights.layer0.act
        if act is not None and activation_name(act.f) != "silu":
            yield f"the activation of its radial network is {activation_name(act.f)}, expected silu"


def _unsupported_product(product: Any) -> Iterator[str]:
    hidden = natural(product.linear.irreps_out)
    if hidden is None:
        yield f"its hidden features are {irreps_text(product.linear.irreps_out)}, expected equally many of 0e, 1o, ..."
        return
    contractions = list(product.symmetric_contractions.contractions)
    l_max = int(len(contractions[0].U_matrix_1) ** 0.5) - 1
    if max(l_max, hidden.l_max) > MAX_L:
        yield f"its features and harmonics reach degree {max(l_max, hidden.l_max)}, expected at most {MAX_L}"
    if hidden.l_max > l_max:
        yield f"its features reach degree {hidden.l_max}, but its harmonics only {l_max}"
    correlations = {correlation(contraction) for contraction in contractions}
    if len(correlations) > 1:
        yield f"one product has several correlations ({', '.join(map(str, sorted(correlations)))})"
    elif max(correlations) > MAX_CORRELATION:
        yield f"its correlation is {max(correlations)}, expected at most {MAX_CORRELATION}"


def correlation(contraction: Any) -> int:
    """The order of a contraction, counted by its U tensors."""
    return next(order - 1 for order in range(1, 100) if not hasattr(contraction, f"U_matrix_{order}"))
