"""What is stored as ``config`` of a potential of a user's own code."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import StringConstraints, ValidationError

from forgefield.config.base import OBJECT, NonNegative, Positive, Section, Seed
from forgefield.config.contents import Finite
from forgefield.config.messages import first_problem


class PluginStatistics(Section):
    """What ``build`` is told of the training set."""

    energy_shifts: dict[str, Finite]
    """eV by chemical symbol, added outside the model"""

    force_rms: NonNegative = 1.0
    """root mean square of the force components, eV/Å"""

    average_neighbors: Positive = 1.0
    """neighbors of an atom, on average"""


class PluginSettings(Section):
    """Where the code is, and what its ``build`` gets."""

    object: Annotated[str, StringConstraints(pattern=OBJECT)]
    """the code, as MODULE:OBJECT"""

    config: dict[str, Any]
    """the user's keys for build"""

    seed: Seed
    """seed of PyTorch's random numbers in build"""

    statistics: PluginStatistics
    """of the training set of a model from scratch; before there is one, shifts of 0, and 1"""


def wrong_settings(config: Mapping[str, Any], cutoff: float) -> str | None:
    """What is wrong with settings, or None."""
    try:
        PluginSettings.model_validate(config)
    except ValidationError as error:
        return first_problem(error, PluginSettings, "config.")
    return None
