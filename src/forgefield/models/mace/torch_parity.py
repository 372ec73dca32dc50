"""Imports of mace-torch's models, with the check that they compute what mace-torch computes."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.models.inference import Engine
from forgefield.models.mace.torch_exchange import from_torch, to_torch
from forgefield.models.mace.torch_heads import heads_of
from forgefield.models.mace.torch_messages import in_words
from forgefield.models.mace.torch_pickle import read_pickle
from forgefield.models.mace.torch_reference import exact_forces, load_pickle, reference
from forgefield.models.parity import compare
from forgefield.models.potential import Potential


def checked_pickle(name: str, path: Path, head: str | None, engine: Engine = "jax") -> tuple[Potential, dict[str, Any]]:
    """A trusted mace-torch ``.model`` file as a potential, and the report of its check."""
    record = read_pickle(path)
    try:
        potential = from_torch(record, head)
    except UserError as error:
        raise UserError(f"models.{name} ({path.name}): {error}") from None
    index = heads_of(record).index(potential.source["mace_torch"]["head"])
    module, note = _client(path, potential, index)
    return potential, check_parity(f"models.{name}: {path}", potential, module, index, engine) | {
        "mace_torch_model": note
    }


def checked_directory(
    name: str, path: Path, potential: Potential, head: str | None, engine: Engine = "jax"
) -> dict[str, Any]:
    """The report of the check of ``potential``, read from the forgefield directory ``path``."""
    held = potential.source.get("mace_torch", {}).get("head")
    if head not in (None, held):
        raise UserError(f"models.{name}.head is {head!r}, but {path} has a single head; remove the key")
    return check_parity(f"models.{name}: {path}", potential, to_torch(potential, torch.float64), engine=engine)


def _client(path: Path, potential: Potential, head: int) -> tuple[torch.nn.Module, str]:
    """The model as mace-torch itself runs it; rebuilt where this mace-torch cannot run what an older one pickled."""
    try:
        module = load_pickle(path).double()
        reference(module, Structure(np.array(potential.elements[:1]), np.zeros((1, 3))), head)
    except Exception as error:
        rebuilt = to_torch(potential, torch.float64)
        return rebuilt, f"rebuilt from its arrays, for the pickled one does not run ({in_words(error)})"
    return module, "as pickled"


def check_parity(
    where: str, potential: Potential, module: torch.nn.Module, head: int = 0, engine: Engine = "jax"
) -> dict[str, Any]:
    """Compare an imported model with mace-torch's; see :func:`~forgefield.models.parity.compare`.

    Forces are derivatives of mace-torch's energy also where its own leave out a part (see
    :func:`~forgefield.models.mace.torch_reference.exact_forces`).
    """
    exact_forces(module)
    return compare(where, potential, "mace-torch", lambda structure: reference(module, structure, head), engine)
