"""The hyperparameters of a FlashCart model, stored as ``config`` of its potential."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import ValidationError

from forgefield.config.architectures import FlashcartConfig
from forgefield.config.base import Positive
from forgefield.config.messages import first_problem

SCALES, SHIFTS = "scale_shift.scales", "scale_shift.shifts"


class FlashcartSettings(FlashcartConfig):
    """FlashCart's own keys, but for the elements, ``r_max`` and energy shifts, which every potential has."""

    avg_neighbors: Positive = 1.0
    """by whose root sums over neighbors are divided"""


def wrong_settings(config: Mapping[str, Any], cutoff: float) -> str | None:
    """What is wrong with settings, or None."""
    try:
        settings = FlashcartSettings.model_validate(config)
    except ValidationError as error:
        return first_problem(error, FlashcartSettings, "config.")
    return None if settings.r_min < cutoff else f"cutoff is {cutoff}, but config.r_min is {settings.r_min}"


def with_statistics(
    config: Mapping[str, Any], buffers: Mapping[str, np.ndarray], force_rms: float, average_neighbors: float
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Settings and buffers of a model from scratch that knows its data, as FlashCart's own ``pre_fit`` makes them."""
    root = np.sqrt(average_neighbors)
    changed = {k: np.full_like(v, root) for k, v in buffers.items() if k.endswith(".sqrt_avg_neighbors")}
    changed[SCALES] = np.full_like(buffers[SCALES], force_rms)
    return dict(config) | {"avg_neighbors": average_neighbors}, dict(buffers) | changed
