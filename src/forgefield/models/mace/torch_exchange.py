"""Models carried between mace-torch and this package, parameter by parameter."""

from contextlib import contextmanager

import numpy as np
import torch

from forgefield.errors import UserError
from forgefield.models.mace.shapes import parameter_shapes
from forgefield.models.mace.names import RADIAL, buffer_name, weight_name
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.mace.torch_checks import check_supported
from forgefield.models.mace.torch_reference import quiet_mace
from forgefield.models.potential import Potential


def from_torch(module: torch.nn.Module) -> Potential:
    """A mace-torch model as a potential, bit by bit.

    Raises:
        UserError: the model has a part that has no counterpart here; the message names it.
    """
    check_supported(module)
    settings = _settings(module)
    state = {name: tensor.detach().cpu().numpy() for name, tensor in module.state_dict().items()}
    elements = [int(z) for z in module.atomic_numbers]
    buffers = {name: state[name] for name in _buffer_names(settings)}
    shapes = parameter_shapes(len(elements), settings, buffers)
    _check_parameters(module, shapes)
    shifts = module.atomic_energies_fn.atomic_energies.detach().flatten().tolist()
    return Potential(
        architecture="mace",
        config=settings.model_dump(mode="json"),
        parameters={name: state[name] for name in shapes},
        buffers=buffers,
        energy_shifts=dict(zip(elements, shifts, strict=True)),
        cutoff=settings.r_max,
    )


def to_torch(potential: Potential, dtype: torch.dtype) -> torch.nn.Module:
    """A potential as mace-torch's ScaleShiftMACE; plain MACE is the case of scale 1 and shift 0.

    The U tensors go along with the weights, so parameters correspond one to one whatever basis they are in.
    """
    settings = MaceSettings.model_validate(potential.config)
    with quiet_mace(), _default_dtype(dtype):
        module = _new_module(potential, settings)
    for layer, product in enumerate(module.products):
        contraction = product.symmetric_contractions.contractions[0]
        correlation = settings.correlation[layer]
        for order in range(1, correlation + 1):
            setattr(contraction, f"U_matrix_{order}", _tensor(potential.buffers[buffer_name(layer, 0, order)], dtype))
            weights = torch.nn.Parameter(_tensor(potential.parameters[weight_name(layer, 0, order, correlation)], dtype))
            if order == correlation:
                contraction.weights_max = weights
            else:
                contraction.weights[correlation - 1 - order] = weights
    tensors = potential.parameters | {name: potential.buffers[name] for name in _buffer_names(settings)}
    missing, unexpected = module.load_state_dict({k: _tensor(v, dtype) for k, v in tensors.items()}, strict=False)
    trainable = {name for name, parameter in module.named_parameters() if parameter.numel()}
    if unexpected or trainable & set(missing):
        raise ValueError(f"parameters do not match mace-torch's: {sorted(trainable & set(missing))}, {unexpected}")
    return module


def _settings(module: torch.nn.Module) -> MaceSettings:
    radial, block, last = module.radial_embedding, module.interactions[0], module.readouts[-1]
    scale_shift = getattr(module, "scale_shift", None)
    contractions = [product.symmetric_contractions.contractions[0] for product in module.products]
    averages = {float(block.avg_num_neighbors) for block in module.interactions}
    if len(averages) > 1:
        raise UserError(f"this mace-torch model cannot be imported: its layers differ in avg_num_neighbors {averages}")
    return MaceSettings(
        r_max=float(module.r_max),
        hidden_channels=module.products[0].linear.irreps_out.dim,
        l_max=int(np.sqrt(len(contractions[0].U_matrix_1))) - 1,
        correlation=tuple(contraction.correlation for contraction in contractions),
        interactions=tuple(type(block).__name__ for block in module.interactions),
        n_bessel=len(radial.bessel_fn.bessel_weights),
        polynomial_cutoff=int(radial.cutoff_fn.p),
        radial_mlp=tuple(block.conv_tp_weights.hs[1:-1]),
        mlp_channels=last.hidden_irreps.dim if hasattr(last, "hidden_irreps") else 16,
        avg_num_neighbors=averages.pop(),
        scale=float(scale_shift.scale) if scale_shift is not None else 1.0,
        shift=float(scale_shift.shift) if scale_shift is not None else 0.0,
        silu_factor=block.conv_tp_weights.layer0.act.cst,
    )


def _buffer_names(settings: MaceSettings) -> list[str]:
    tensors = [
        buffer_name(layer, 0, order)
        for layer, correlation in enumerate(settings.correlation)
        for order in range(1, correlation + 1)
    ]
    return [RADIAL + "bessel_weights", RADIAL + "prefactor", *tensors]


def _check_parameters(module: torch.nn.Module, shapes: dict[str, tuple[int, ...]]) -> None:
    """Nothing that was trained may be left behind."""
    found = {name: tuple(p.shape) for name, p in module.named_parameters() if p.numel()}
    differing = sorted(name for name in found.keys() | shapes.keys() if found.get(name) != shapes.get(name))
    if differing:
        name = differing[0]
        raise UserError(
            f"this mace-torch model cannot be imported: parameter {name} has shape {found.get(name)}, "
            f"expected {shapes.get(name)}; choose another foundation model"
        )


def _new_module(potential: Potential, settings: MaceSettings) -> torch.nn.Module:
    from e3nn import o3
    from mace import modules

    blocks = [modules.interaction_classes[name] for name in settings.interactions]
    return modules.ScaleShiftMACE(
        r_max=settings.r_max,
        num_bessel=settings.n_bessel,
        num_polynomial_cutoff=settings.polynomial_cutoff,
        max_ell=settings.l_max,
        interaction_cls=blocks[-1],
        interaction_cls_first=blocks[0],
        num_interactions=settings.n_layers,
        num_elements=len(potential.elements),
        hidden_irreps=o3.Irreps(f"{settings.hidden_channels}x0e"),
        MLP_irreps=o3.Irreps(f"{settings.mlp_channels}x0e"),
        atomic_energies=np.array(list(potential.energy_shifts.values())),
        avg_num_neighbors=settings.avg_num_neighbors,
        atomic_numbers=list(potential.elements),
        correlation=list(settings.correlation),
        gate=torch.nn.functional.silu,
        use_reduced_cg=False,
        radial_MLP=list(settings.radial_mlp),
        atomic_inter_scale=settings.scale,
        atomic_inter_shift=settings.shift,
    )


def _tensor(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor(np.asarray(array)).to(dtype)


@contextmanager
def _default_dtype(dtype: torch.dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
