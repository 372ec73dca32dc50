"""mace-torch's own module for a potential, built and filled."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from forgefield.errors import UserError
from forgefield.models.mace.names import RADIAL, buffer_name, weight_name
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.mace.torch_reference import quiet_mace
from forgefield.models.potential import Potential
from forgefield.models.pytorch.building import default_dtype

GATES = {"silu": torch.nn.functional.silu, "tanh": torch.tanh, "abs": torch.abs, None: None}


def new_module(
    potential: Potential, settings: MaceSettings, origin: Mapping[str, Any], cls: str, dtype: torch.dtype
) -> torch.nn.Module:
    """A module with random weights; ``origin`` is what :func:`from_torch` noted of the model that was imported.

    Raises:
        UserError: mace-torch has no model of these settings.
    """
    dimensions = origin.get("dimensions", {})
    shifts = np.array(list(potential.energy_shifts.values()))
    arguments = {
        "num_elements": len(potential.elements),
        "atomic_numbers": list(potential.elements),
        "atomic_energies": shifts[None] if dimensions.get("atomic_energies_fn.atomic_energies") == 2 else shifts,
        "use_reduced_cg": origin.get("use_reduced_cg", False),
        "heads": [origin.get("head", "Default")],
    }
    if cls == "ScaleShiftMACE":
        for name in ("scale", "shift"):
            value = getattr(settings, name)
            arguments[f"atomic_inter_{name}"] = [value] if dimensions.get(f"scale_shift.{name}") == 1 else value
    with quiet_mace(), default_dtype(dtype):
        from mace import modules

        module = getattr(modules, cls)(**_arguments(settings), **arguments)
    _keep_precise(module.atomic_energies_fn, shifts)
    return module


def fill_module(module: torch.nn.Module, potential: Potential, settings: MaceSettings, dtype: torch.dtype) -> None:
    """Give a new module the potential's parameters, buffers and constants."""
    tensors = {name: torch.tensor(np.asarray(v)) for name, v in (potential.parameters | potential.buffers).items()}
    coefficient = tensors.pop(RADIAL + "coeff", None)
    if coefficient is not None:
        module.radial_embedding.bessel_fn.coeff = float(coefficient)
    for layer in settings.layers:
        for degree, contraction in enumerate(module.products[layer.index].symmetric_contractions.contractions):
            for order in range(1, layer.correlation + 1):
                weights = tensors[weight_name(layer.index, degree, order, layer.correlation)]
                coupling = tensors[buffer_name(layer.index, degree, order)]
                _resize(contraction, order, layer.correlation, weights.to(dtype), coupling.to(dtype))
    for act in _activations(module):
        act.cst = settings.silu_factor
    if hasattr(module.readouts[-1], "non_linearity") and settings.gate is not None:
        module.readouts[-1].non_linearity.acts[0].cst = settings.gate_factor
    missing, unexpected = module.load_state_dict(tensors, strict=False)
    trainable = {name for name, parameter in module.named_parameters() if parameter.numel()}
    if unexpected or trainable & set(missing):
        raise ValueError(f"parameters do not match mace-torch's: {sorted(trainable & set(missing))}, {unexpected}")


def _arguments(settings: MaceSettings) -> dict[str, Any]:
    from e3nn import o3
    from mace import modules

    first, *later = settings.interactions
    if len(set(later)) > 1:
        raise UserError(f"mace-torch has no model whose later layers differ ({', '.join(later)})")
    n, channels = settings.n_layers, settings.hidden_channels
    edges = _edge_irreps(settings)
    return {
        "r_max": settings.r_max,
        "num_bessel": settings.n_bessel,
        "num_polynomial_cutoff": settings.polynomial_cutoff,
        "max_ell": settings.l_max,
        "interaction_cls": modules.interaction_classes[settings.interactions[-1]],
        "interaction_cls_first": modules.interaction_classes[first],
        "num_interactions": n,
        "hidden_irreps": _natural(channels, settings.hidden_l_max[0]),
        "keep_last_layer_irreps": n > 1 and settings.hidden_l_max[-1] > 0,
        "edge_irreps": edges,
        "use_edge_irreps_first": settings.source_channels[0] != channels,
        "MLP_irreps": o3.Irreps(f"{settings.mlp_channels}x0e"),
        "readout_cls": getattr(modules.blocks, settings.readouts[-1]),
        "use_last_readout_only": n > 1 and len(settings.readouts) == 1,
        "gate": GATES[settings.gate],
        "avg_num_neighbors": settings.avg_num_neighbors,
        "correlation": list(settings.correlation),
        "use_agnostic_product": settings.agnostic_product,
        "radial_type": settings.radial_type,
        "distance_transform": settings.distance_transform or "None",
        "apply_cutoff": settings.apply_cutoff,
        "pair_repulsion": settings.pair_repulsion,
        "radial_MLP": list(settings.radial_mlp),
    }


def _edge_irreps(settings: MaceSettings) -> Any:
    """What neighbors send, or None where it is as wide as their features."""
    given = list(zip(settings.source_channels, settings.source_l_max, strict=True))
    usual = [(settings.hidden_channels, layer.input_l_max) for layer in settings.layers]
    return None if given == usual else _natural(*given[-1])


def _natural(channels: int, l_max: int) -> Any:
    from e3nn import o3

    return o3.Irreps([(channels, (degree, (-1) ** degree)) for degree in range(l_max + 1)])


def _resize(contraction: Any, order: int, correlation: int, weights: torch.Tensor, coupling: torch.Tensor) -> None:
    """Make room for couplings in another basis than a new module's, which may have another number of paths."""
    setattr(contraction, f"U_matrix_{order}", coupling)
    position = correlation - 1 - order
    held = contraction.weights_max if order == correlation else contraction.weights[position]
    if held.shape == weights.shape:
        return
    if order == correlation:
        contraction.weights_max = torch.nn.Parameter(weights)
    else:
        contraction.weights[position] = torch.nn.Parameter(weights)


def _activations(module: torch.nn.Module) -> Iterator[Any]:
    """The normalized SiLU of the radial networks; those of non-linear blocks have constants of their own."""
    for block in module.interactions:
        first = getattr(block.conv_tp_weights, "layer0", None)
        if first is not None and first.act is not None:
            yield first.act


def _keep_precise(block: Any, shifts: np.ndarray) -> None:
    """mace-torch rounds energy shifts when it adds them; the file keeps them, for use in double precision."""
    held = block.atomic_energies
    if not np.array_equal(held.double().numpy().ravel(), shifts):
        block.atomic_energies = torch.tensor(shifts).reshape(held.shape)
