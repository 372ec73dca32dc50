"""Models carried between mace-torch and this package, parameter by parameter."""

from typing import Any

import numpy as np
import torch
from pydantic import ValidationError

from forgefield.config.messages import first_problem
from forgefield.errors import UserError
from forgefield.models.mace.buffers import COEFFICIENT, mace_buffer_names
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.mace.shapes import parameter_shapes
from forgefield.models.mace.stored import wrong_parameter
from forgefield.models.mace.torch_checks import check_supported
from forgefield.models.mace.torch_heads import choose_head, heads_of, single_head
from forgefield.models.mace.torch_messages import REFUSED, SAVE_AGAIN, in_words
from forgefield.models.mace.torch_module import fill_module, new_module
from forgefield.models.mace.torch_settings import read_settings
from forgefield.models.potential import Potential, not_finite

SHIFTS, SCALE, SHIFT = "atomic_energies_fn.atomic_energies", "scale_shift.scale", "scale_shift.shift"


def from_torch(module: Any, head: str | None = None) -> Potential:
    """A mace-torch model as a potential, bit by bit.

    Args:
        module: the model, or the record of one from :func:`~forgefield.models.mace.torch_pickle.read_pickle`.
        head: which of several heads to take; the others are left out.

    Raises:
        UserError: the model has a part that has no counterpart here, lacks one, holds a number that is not finite, or
            has no such head; the message names it.
    """
    try:
        potential = _read(module, head)
        lost = not_finite(potential)
    except UserError:
        raise
    except ValidationError as error:
        raise UserError(f"{REFUSED}: {first_problem(error, MaceSettings)}; {SAVE_AGAIN}") from error
    except Exception as error:  # a file can hold anything in any place
        raise UserError(f"{REFUSED}: its layout is unexpected ({in_words(error)}); {SAVE_AGAIN}") from error
    if lost:
        raise UserError(f"{REFUSED}: {lost} is NaN or infinite; choose another foundation model")
    return potential


def _read(module: Any, head: str | None) -> Potential:
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
    names = mace_buffer_names(settings)
    missing = [name for name in names if name not in tensors]
    if missing:
        raise UserError(f"{REFUSED}: it has no {missing[0]}; {SAVE_AGAIN}")
    buffers = {name: tensors[name].numpy() for name in names}
    if settings.radial_type == "gaussian":
        buffers[COEFFICIENT] = np.array(float(module.radial_embedding.bessel_fn.coeff))
    return buffers


def _check_parameters(trained: dict[str, torch.Tensor], shapes: dict[str, tuple[int, ...]]) -> None:
    """Nothing that was trained may be left behind."""
    if wrong := wrong_parameter({name: tuple(tensor.shape) for name, tensor in trained.items()}, shapes):
        raise UserError(f"{REFUSED}: {wrong}; {SAVE_AGAIN}, or choose another model")
    unusual = {str(t.dtype).removeprefix("torch.") for t in trained.values()} - {"float32", "float64"}
    if unusual:
        raise UserError(
            f"{REFUSED}: its weights are {unusual.pop()}, expected float32 or float64; convert it with .float()"
        )
