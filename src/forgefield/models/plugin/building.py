"""From a user's code to a module, and to a potential."""

from dataclasses import replace
from functools import reduce
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from ase.data import atomic_numbers, chemical_symbols

from forgefield.config.messages import did_you_mean
from forgefield.errors import UserError
from forgefield.models.plugin.settings import PluginSettings, PluginStatistics
from forgefield.models.potential import Potential
from forgefield.models.pytorch.building import fill, host_array, seeded

if TYPE_CHECKING:
    from forgefield.config.model import ModelConfig


def initial_potential(config: "ModelConfig") -> Potential:
    """What ``build`` makes before there are statistics."""
    statistics = PluginStatistics(energy_shifts=dict.fromkeys(config.elements, 0.0))
    settings = PluginSettings(**config.python.model_dump(), seed=config.seed, statistics=statistics)
    return _built_potential(
        Potential(
            architecture="python",
            config=settings.model_dump(mode="json"),
            parameters={},
            buffers={},
            energy_shifts=dict.fromkeys((atomic_numbers[s] for s in config.elements), 0.0),
            cutoff=config.r_max,
            pretrained=False,
            source={"kind": "scratch", "seed": config.seed},
        )
    )


def with_statistics(potential: Potential, force_rms: float, average_neighbors: float) -> Potential:
    """A model from scratch, built again with the statistics of its training set and with its energy shifts."""
    shifts = {chemical_symbols[z]: shift for z, shift in potential.energy_shifts.items()}
    statistics = PluginStatistics(energy_shifts=shifts, force_rms=force_rms, average_neighbors=average_neighbors)
    return _built_potential(
        replace(potential, config=potential.config | {"statistics": statistics.model_dump(mode="json")})
    )


def to_module(potential: Potential, dtype: torch.dtype) -> torch.nn.Module:
    """The user's module with the potential's arrays.

    Raises:
        UserError: the code is not there, ``build`` fails or makes no module, or one of other arrays.
    """
    module = _built(potential, dtype)
    fill(module, {**potential.parameters, **potential.buffers})
    return module


def find_object(place: str) -> Any:
    """What ``MODULE:OBJECT`` names; imports the module, hence runs its code."""
    name, _, path = place.partition(":")
    module = _module(place, name)
    try:
        found = reduce(getattr, path.split("."), module)
    except AttributeError:
        names = [name for name in vars(module) if not name.startswith("_")]
        file = getattr(module, "__file__", None) or name
        raise UserError(f"python.object {place}: {file} has no {path}{did_you_mean(path, names)}") from None
    if not callable(getattr(found, "build", None)):
        raise UserError(f"python.object {place}: has no function build(config, statistics)")
    return found


def _module(place: str, name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if f"{name}.".startswith(f"{error.name}."):
            way_out = "let Python find it, by PYTHONPATH where it is not installed"
        else:
            way_out = f"{name} is there, but imports it; install it"
        raise UserError(f"python.object {place}: {error}; {way_out}") from None
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise UserError(f"python.object {place}: importing {name} failed with {what}; correct it") from error


def _built_potential(potential: Potential) -> Potential:
    """The potential with the arrays of a new module; what does not require a gradient is not trained."""
    module = _built(potential, torch.float64)
    trained = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    arrays = {name: host_array(tensor) for name, tensor in module.state_dict().items()}
    if not trained:
        raise UserError(f"python.object {potential.config['object']}: build made a module without parameters to train")
    return replace(
        potential,
        parameters={name: arrays[name] for name in trained},
        buffers={name: array for name, array in arrays.items() if name not in trained},
    )


def _built(potential: Potential, dtype: torch.dtype) -> torch.nn.Module:
    settings = PluginSettings.model_validate(potential.config)
    found = find_object(settings.object)
    config = settings.config | {
        "elements": [chemical_symbols[z] for z in potential.elements],
        "r_max": potential.cutoff,
    }
    with seeded(settings.seed, dtype):
        try:
            module = found.build(config, settings.statistics.model_dump())
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise UserError(
                f"python.object {settings.object}: build failed with {what}; correct it or its config"
            ) from error
    if not isinstance(module, torch.nn.Module):
        raise UserError(
            f"python.object {settings.object}: build made a {type(module).__name__}, expected a torch.nn.Module"
        )
    return module.to(dtype)
