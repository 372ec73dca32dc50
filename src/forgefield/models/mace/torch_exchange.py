"""Models carried between mace-torch and this package, parameter by parameter."""

from typing import Any

import numpy as np
import torch

from forgefield.errors import UserError
from forgefield.models.mace.names import RADIAL, REPULSION, TRANSFORM, buffer_name
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.mace.shapes import parameter_shapes
from forgefield.models.mace.torch_checks import check_supported
from forgefield.models.mace.torch_heads import choose_head, heads_of, single_head
from forgefield.models.mace.torch_module import fill_module, new_module
from forgefield.models.mace.torch_settings import read_settings
from forgefield.models.potential import Potential

RADIAL_BUFFERS = {"bessel": ("bessel_weights", "prefactor"), "gaussian": ("gaussian_weights",), "chebyshev": ("n",)}
TRANSFORM_BUFFERS = {None: (), "Agnesi": ("q", "p", "a", "covalent_radii"), "Soft": ("alpha", "covalent_radii")}
REPULSION_BUFFERS = ("c", "p", "covalent_radii", "a_exp", "a_prefactor")
SHIFTS, SCALE, SHIFT = "atomic_energies_fn.atomic_energies", "scale_shift.scale", "scale_shift.shift"


def from_torch(module: Any, head: str | None = None) -> Potential:
    """A mace-torch model as a potential, bit by bit.

    Args:
        module: the model, or the record of one from :func:`~forgefield.models.mace.torch_pickle.read_pickle`.
        head: which of several heads to take; the others are left out.

    Raises:
        UserError: the model has a part that has no counterpart here, or no such head; the message names it.
    """
    check_supported(module)
    heads = heads_of(module)
    chosen = choose_head(heads, head)
    tensors = {name: tensor.detach().cpu() for name, tensor in module.state_dict().items()}
    origin = _origin(module, tensors, chosen)
    if len(heads) > 1:
        tensors = single_head(tensors, heads.index(chosen), len(heads))
    scale, shift = (float(tensors[name]) if name in tensors else empty for name, empty in ((SCALE, 1.0), (SHIFT, 0.0)))
    settings = read_settings(module, scale, shift)
    buffers = _buffers(module, tensors, settings)
    elements = [int(z) for z in module.atomic_numbers]
    shapes = parameter_shapes(len(elements), settings, buffers)
    _check_parameters({name: tensors[name] for name, p in module.named_parameters() if p.numel()}, shapes)
    return Potential(
        architecture="mace",
        config=settings.model_dump(mode="json"),
        parameters={name: tensors[name].numpy() for name in shapes},
        buffers=buffers,
        energy_shifts=dict(zip(elements, tensors[SHIFTS].flatten().tolist(), strict=True)),
        cutoff=settings.r_max,
        source={"mace_torch": origin},
    )


def to_torch(potential: Potential, dtype: torch.dtype, plain: bool = False) -> torch.nn.Module:
    """A potential as mace-torch's ScaleShiftMACE, with a single head.

    The U tensors go along with the weights, so parameters correspond one to one whatever basis they are in.

    Args:
        potential: a MACE model.
        dtype: of parameters and buffers. Energy shifts stay in float64 where they would be rounded.
        plain: give a model that was imported from mace-torch's MACE back as one.

    Raises:
        UserError: mace-torch has no model of these settings.
    """
    settings = MaceSettings.model_validate(potential.config)
    origin = potential.source.get("mace_torch", {})
    cls = origin.get("class", "ScaleShiftMACE") if plain and settings.scale == 1.0 and settings.shift == 0.0 else None
    module = new_module(potential, settings, origin, cls or "ScaleShiftMACE", dtype)
    fill_module(module, potential, settings, dtype)
    return module


def _origin(module: Any, tensors: dict[str, torch.Tensor], head: str) -> dict[str, Any]:
    """What does not change a model's results, but makes its way back to mace-torch the same file."""
    return {
        "class": type(module).__name__,
        "head": head,
        "use_reduced_cg": bool(getattr(module, "use_reduced_cg", False)),
        "dimensions": {name: tensors[name].dim() for name in (SHIFTS, SCALE, SHIFT) if name in tensors},
    }


def _buffers(module: Any, tensors: dict[str, torch.Tensor], settings: MaceSettings) -> dict[str, np.ndarray]:
    """The fixed arrays that a model's results depend on, by mace-torch's names."""
    names = [RADIAL + name for name in RADIAL_BUFFERS[settings.radial_type]]
    names += [TRANSFORM + name for name in TRANSFORM_BUFFERS[settings.distance_transform]]
    names += [REPULSION + name for name in REPULSION_BUFFERS if settings.pair_repulsion]
    names += [
        buffer_name(layer.index, degree, order)
        for layer in settings.layers
        for degree in range(layer.output_l_max + 1)
        for order in range(1, layer.correlation + 1)
    ]
    missing = [name for name in names if name not in tensors]
    if missing:
        raise UserError(
            f"this mace-torch model cannot be imported: it has no {missing[0]}; save it again with mace-torch 0.3.16"
        )
    buffers = {name: tensors[name].numpy() for name in names}
    if settings.radial_type == "gaussian":
        # mace-torch keeps the width of the Gaussians apart from its buffers, in float64
        buffers[RADIAL + "coeff"] = np.array(module.radial_embedding.bessel_fn.coeff)
    return buffers


def _check_parameters(trained: dict[str, torch.Tensor], shapes: dict[str, tuple[int, ...]]) -> None:
    """Nothing that was trained may be left behind."""
    found = {name: tuple(tensor.shape) for name, tensor in trained.items()}
    differing = sorted(name for name in found.keys() | shapes.keys() if found.get(name) != shapes.get(name))
    if differing:
        name = differing[0]
        raise UserError(
            f"this mace-torch model cannot be imported: parameter {name} has shape {found.get(name)}, "
            f"expected {shapes.get(name)}; choose another foundation model"
        )
    unusual = {str(t.dtype).removeprefix("torch.") for t in trained.values()} - {"float32", "float64"}
    if unusual:
        raise UserError(
            f"this mace-torch model cannot be imported: its weights are {unusual.pop()}, expected float32 or float64; "
            "convert it with .float()"
        )
