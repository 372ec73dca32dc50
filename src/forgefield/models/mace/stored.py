"""Whether what was stored of a MACE model belongs together."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from forgefield.config.messages import first_problem
from forgefield.models.mace.buffers import buffer_names
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.mace.shapes import parameter_shapes

if TYPE_CHECKING:
    from forgefield.models.potential import Potential


def wrong_settings(config: Mapping[str, Any], cutoff: float) -> str | None:
    """What is wrong with settings, or None."""
    try:
        settings = MaceSettings.model_validate(config)
    except ValidationError as error:
        return first_problem(error, MaceSettings, "config.")
    if settings.r_max != cutoff:
        return f"cutoff is {cutoff}, but config.r_max is {settings.r_max}"
    return None


def wrong_arrays(potential: "Potential") -> str | None:
    """Which array is missing, or is not what the potential's settings ask for, or None."""
    settings = MaceSettings.model_validate(potential.config)
    missing = next((name for name in buffer_names(settings) if name not in potential.buffers), None)
    if missing:
        return f"buffer {missing} is missing"
    shapes = parameter_shapes(len(potential.elements), settings, potential.buffers)
    return wrong_parameter({name: array.shape for name, array in potential.parameters.items()}, shapes)


def wrong_parameter(found: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]) -> str | None:
    """The first parameter that is missing, unknown or of another shape, or None."""
    for name in sorted(found.keys() | expected.keys()):
        if name not in found:
            return f"parameter {name} is missing"
        if name not in expected:
            return f"parameter {name} is unknown to models of these settings"
        if found[name] != expected[name]:
            return f"parameter {name} has shape {found[name]}, expected {expected[name]}"
    return None
