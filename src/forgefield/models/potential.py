"""A potential and its files, in safe formats only: model.json beside weights.safetensors.

Energies are in eV and lengths in Å, and the file says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from ase.data import atomic_numbers, chemical_symbols
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from forgefield import __version__
from forgefield.errors import UserError
from forgefield.files import atomic_directory, write_json
from forgefield.models.description import AGAIN, FORMAT, UNITS, Description, read_description
from forgefield.models.flashcart import settings as flashcart
from forgefield.models.mace import stored as mace
from forgefield.models.plugin import settings as python

WRONG_SETTINGS = {
    "mace": mace.wrong_settings,
    "flashcart": flashcart.wrong_settings,
    "python": python.wrong_settings,
}
"""What each architecture says of its settings."""


@dataclass(frozen=True)
class Potential:
    """A model with its weights.

    Attributes:
        architecture: the name of the model's architecture, such as ``mace``.
        config: the architecture's own settings (JSON content).
        parameters: what training changes, by name.
        buffers: fixed arrays, by name.
        energy_shifts: eV by atomic number, added on the host in float64; their keys are the elements the model knows.
        cutoff: the largest distance of interacting atoms, Å.
        pretrained: False for random parameters.
        source: where it came from (name, sha256, ...).
    """

    architecture: str
    config: dict[str, Any]
    parameters: Mapping[str, np.ndarray]
    buffers: Mapping[str, np.ndarray]
    energy_shifts: Mapping[int, float]
    cutoff: float
    pretrained: bool = True
    source: dict[str, Any] = field(default_factory=dict)

    @property
    def elements(self) -> tuple[int, ...]:
        """Atomic numbers in the order of the model's species index."""
        return tuple(self.energy_shifts)


def save_potential(potential: Potential, path: Path | str) -> None:
    """Write the directory ``path`` whole or not at all."""
    description = {
        "forgefield_format": FORMAT,
        "architecture": potential.architecture,
        "config": potential.config,
        "energy_shifts": {chemical_symbols[z]: float(e) for z, e in potential.energy_shifts.items()},
        "cutoff": potential.cutoff,
        "units": UNITS,
        "pretrained": potential.pretrained,
        "source": potential.source,
        "created_by": f"forgefield {__version__}",
    }
    tensors = {f"parameters.{k}": np.asarray(v, order="C") for k, v in potential.parameters.items()}
    tensors |= {f"buffers.{k}": np.asarray(v, order="C") for k, v in potential.buffers.items()}
    with atomic_directory(path) as directory:
        write_json(directory / "model.json", description)
        # not save_file, whose files only their owner can read
        (directory / "weights.safetensors").write_bytes(save(tensors))


def load_potential(path: Path | str) -> Potential:
    """Read a directory written by :func:`save_potential`.

    Raises:
        UserError: the directory is missing, is a file, is incomplete or damaged, of another format or in other units,
            or holds a number that is not finite.
    """
    path = Path(path)
    if path.is_file():
        model = f"models: {{{path.stem}: {{foundation: {path}}}}}"
        raise UserError(
            f"{path}: a file, not a directory made by forgefield; import the model first, into results/models/"
            f"{path.stem}: forgefield import-model --config '{model}' --model {path.stem}"
        )
    if not (path / "model.json").exists():
        raise UserError(f"{path}: no model here (model.json is missing); give a directory made by forgefield")
    description = read_description(path / "model.json")
    if description.architecture not in WRONG_SETTINGS:
        known = ", ".join(WRONG_SETTINGS)
        raise UserError(f"{path / 'model.json'}: architecture {description.architecture!r}, expected one of: {known}")
    if wrong := WRONG_SETTINGS[description.architecture](description.config, description.cutoff):
        raise UserError(f"{path / 'model.json'}: {wrong}; {AGAIN}")
    potential = _with_weights(description, path / "weights.safetensors")
    wrong = mace.wrong_arrays(potential) if potential.architecture == "mace" else None
    if wrong is None and (name := not_finite(potential)):
        wrong = f"{name} is NaN or infinite"
    if wrong:
        raise UserError(f"{path / 'weights.safetensors'}: {wrong}; {AGAIN}")
    return potential


def _with_weights(description: Description, weights: Path) -> Potential:
    try:
        tensors = load_file(weights)
    except (OSError, SafetensorError, KeyError) as error:
        raise UserError(f"{weights}: not readable ({error}); {AGAIN}") from None
    return Potential(
        architecture=description.architecture,
        config=description.config,
        parameters=_with_prefix(tensors, "parameters."),
        buffers=_with_prefix(tensors, "buffers."),
        energy_shifts={atomic_numbers[s]: e for s, e in description.energy_shifts.items()},
        cutoff=description.cutoff,
        pretrained=description.pretrained,
        source=description.source,
    )


def not_finite(potential: Potential) -> str | None:
    """The first part of a potential that is NaN or infinite, in words, or None."""
    for kind, arrays in (("parameter", potential.parameters), ("buffer", potential.buffers)):
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                return f"{kind} {name}"
    shifts = (z for z, shift in potential.energy_shifts.items() if not np.isfinite(shift))
    return next((f"the energy shift of {chemical_symbols[z]}" for z in shifts), None)


def _with_prefix(tensors: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
