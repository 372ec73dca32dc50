"""Models carried between the package flashcart and this one, array by array."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from ase.data import atomic_numbers, chemical_symbols
from flashcart.model.flashcart import FlashCartPotential

from forgefield.errors import UserError
from forgefield.models.flashcart.settings import SHIFTS, FlashcartSettings
from forgefield.models.potential import Potential
from forgefield.models.pytorch.building import fill, host_array, seeded

if TYPE_CHECKING:
    from forgefield.config.model import ModelConfig


def initial_potential(config: "ModelConfig") -> Potential:
    """A model with FlashCart's random initial parameters, in float64."""
    settings = FlashcartSettings(**config.flashcart.model_dump())
    module = _new(config.elements, config.r_max, settings, torch.float64, config.seed)
    return from_flashcart(module, pretrained=False, source={"kind": "scratch", "seed": config.seed})


def to_flashcart(potential: Potential, dtype: torch.dtype) -> FlashCartPotential:
    """A potential as the package's own model.

    Raises:
        UserError: the potential's arrays are not those of its settings.
    """
    settings = FlashcartSettings.model_validate(potential.config)
    symbols = [chemical_symbols[z] for z in potential.elements]
    module = _new(symbols, potential.cutoff, settings, dtype)
    shifts = {SHIFTS: np.array(list(potential.energy_shifts.values()))}
    fill(module, {**potential.parameters, **potential.buffers, **shifts})
    return module


def from_flashcart(module: FlashCartPotential, *, pretrained: bool, source: dict[str, Any]) -> Potential:
    """The package's own model as a potential, with all arrays in their precision."""
    arrays = {name: host_array(tensor) for name, tensor in module.state_dict().items()}
    names = dict(module.named_parameters())
    shifts = arrays.pop(SHIFTS)
    config = {k: v for k, v in module.to_model_config().items() if k in FlashcartSettings.model_fields}
    config["recompute_radial"] = module.recompute_radial
    return Potential(
        architecture="flashcart",
        config=FlashcartSettings.model_validate(config).model_dump(mode="json"),
        parameters={name: arrays[name] for name in names},
        buffers={name: array for name, array in arrays.items() if name not in names},
        energy_shifts=dict(zip((atomic_numbers[s] for s in module.elements), shifts.tolist(), strict=True)),
        cutoff=module.r_max,
        pretrained=pretrained,
        source=source,
    )


def _new(
    elements: list[str], r_max: float, settings: FlashcartSettings, dtype: torch.dtype, seed: int = 0
) -> FlashCartPotential:
    # constants that are not stored are as precise as the default dtype in which they are made
    with seeded(seed, dtype):
        try:
            return FlashCartPotential(elements=elements, r_max=r_max, **settings.model_dump())
        except (RuntimeError, ValueError) as error:
            raise UserError(f"flashcart has no model of these settings: {error}") from None
