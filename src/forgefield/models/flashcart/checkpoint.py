"""Import of the directories that FlashCart writes, with the check that they compute what FlashCart computes."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from ase import Atoms
from ase.data import atomic_numbers
from flashcart.data.graph import graph_from_ase
from flashcart.model.flashcart import FlashCartPotential

from forgefield.config.yaml import read_yaml
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.models.flashcart.exchange import from_flashcart, to_flashcart
from forgefield.models.parity import Reference, compare
from forgefield.models.potential import Potential, not_finite
from forgefield.models.pytorch.building import default_dtype, seeded, wrong_array

SETTINGS, WEIGHTS = "model_config.yaml", "model.pt"
# rows and columns of Voigt's order
VOIGT = ([0, 5, 4], [5, 1, 3], [4, 3, 2])


def checked_checkpoint(name: str, path: Path) -> tuple[Potential, dict[str, Any]]:
    """A checkpoint's directory as a potential, and the report of its check.

    Raises:
        UserError: a file is missing or damaged, or holds what this version of FlashCart does not know.
    """
    module = _rebuilt(path)
    potential = from_flashcart(module, pretrained=True, source={})
    if lost := not_finite(potential):
        raise UserError(f"{path / WEIGHTS}: {lost} is NaN or infinite; choose another foundation model")
    module = module.double()
    return potential, check_parity(f"models.{name}: {path}", potential, module)


def check_parity(where: str, potential: Potential, module: FlashCartPotential | None = None) -> dict[str, Any]:
    """Compare a potential with the package's model, by default with what the package makes of it."""
    module = to_flashcart(potential, torch.float64) if module is None else module
    return compare(where, potential, "flashcart", lambda structure: reference(module, structure))


def reference(module: FlashCartPotential, structure: Structure) -> Reference | None:
    """What the package computes in float64, or None where atoms have no neighbors: it cannot."""
    atoms = Atoms(structure.numbers, structure.positions, cell=structure.cell, pbc=structure.pbc)
    periodic = bool(structure.pbc.any()) and structure.volume > 0
    with default_dtype(torch.float64):
        graph = graph_from_ase(atoms, module.elements, module.r_max)
        if not graph.edge_index.shape[1]:
            return None
        found = module.predict(graph, compute_forces=True, compute_stress=periodic)
    virial = found["virials"][0].detach().numpy()[np.array(VOIGT)] if periodic else None
    return Reference(float(found["energy"][0]), found["forces"].detach().numpy(), virial)


def _rebuilt(path: Path) -> FlashCartPotential:
    """The package's model with all constants in float64 and the weights of the file."""
    settings = read_yaml(path / SETTINGS)
    if not isinstance(settings, dict):
        raise UserError(f"{path / SETTINGS}: expected keys such as elements and r_max; save the checkpoint again")
    with seeded(0, torch.float64):
        try:
            module = FlashCartPotential.from_config(settings)
        except Exception as error:  # a file can hold anything in any place
            raise _refused(path, f"it describes no model ({type(error).__name__}: {error})") from None
    if unknown := sorted(settings.keys() - module.to_model_config().keys()):
        raise _refused(path, f"{unknown[0]} is unknown")
    if wrong := [s for s in module.elements if atomic_numbers.get(s, 0) < 1 or module.elements.count(s) > 1]:
        raise _refused(path, f"elements has {wrong[0]!r}, which is no element or is there twice")
    return _with_weights(module, path / WEIGHTS)


def _refused(path: Path, reason: str) -> UserError:
    return UserError(f"{path / SETTINGS}: {reason} in FlashCart 0.1.0; save the checkpoint with that version")


def _with_weights(module: FlashCartPotential, path: Path) -> FlashCartPotential:
    """The weights in their own precision beside constants in float64."""
    try:
        # nothing but tensors is read: no code runs
        state = torch.load(path, map_location="cpu", weights_only=True)
        shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    except Exception as error:  # a damaged file can fail in any way
        raise UserError(
            f"{path}: not the weights of a model ({type(error).__name__}); save the checkpoint again"
        ) from None
    if wrong := wrong_array(shapes, module):
        raise UserError(f"{path}: {wrong}; it does not belong to {SETTINGS} beside it, or to FlashCart 0.1.0")
    module.load_state_dict(state, assign=True)
    return module
