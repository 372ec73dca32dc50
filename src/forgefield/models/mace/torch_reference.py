"""mace-torch, loaded quietly, and its own results for a structure."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from forgefield.data.neighbors import neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.models.mace.torch_messages import SAVE_AGAIN, in_words
from forgefield.models.parity import Reference
from forgefield.models.pytorch.building import default_dtype

KNOWN_WARNINGS = (
    "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected",
    r"`torch\.jit\.\w+` is deprecated",
    "The TorchScript type system doesn't support instance-level annotations",
    "To copy construct from a tensor",
)


@contextmanager
def quiet_mace() -> Iterator[None]:
    """Hold back what mace-torch and e3nn print and warn of at import, and let e3nn read its own table of constants."""
    # e3nn 0.4.4 reads a pickled table with torch.load's old default
    before = os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            for message in KNOWN_WARNINGS:
                warnings.filterwarnings("ignore", message=message)
            yield
    finally:
        if before is None:
            del os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"]
        else:
            os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = before


@contextmanager
def not_scripted() -> Iterator[None]:
    """Let e3nn leave its generated code as it is: TorchScript takes as long as all else, and the code is no faster.

    Not where a model trains in mixed precision, which only TorchScript handles in all of this code.
    """
    with quiet_mace():
        from e3nn import get_optimization_defaults, set_optimization_defaults

    before = get_optimization_defaults()
    set_optimization_defaults(jit_script_fx=False)
    try:
        yield
    finally:
        set_optimization_defaults(**before)


def load_pickle(path: Path) -> torch.nn.Module:
    """Unpickle a ``.model`` file. This can run any code in it: call it only for a file that the user trusts.

    Raises:
        UserError: the file does not hold a model that mace-torch can rebuild.
    """
    with quiet_mace():
        import mace.modules  # noqa: F401

        try:
            module = torch.load(path, map_location="cpu", weights_only=False)
        except Exception as error:
            raise UserError(
                f"{path}: mace-torch cannot rebuild this model ({in_words(error)}); {SAVE_AGAIN}"
            ) from error
    if not isinstance(module, torch.nn.Module):
        raise UserError(f"{path}: holds a {type(module).__name__}, expected a whole mace-torch model")
    return module


def reference(module: torch.nn.Module, structure: Structure, head: int = 0) -> Reference:
    """What a mace-torch model computes with one of its heads, in the module's precision."""
    with quiet_mace(), default_dtype(module.r_max.dtype):
        output = module(torch_inputs(module, structure, head), compute_virials=True)
    energy = output.get("interaction_energy")
    if energy is None:  # plain MACE: the first contribution is that of the energy shifts
        energy = output["contributions"][:, 1:].sum(dim=1)
    return Reference(
        float(energy.detach()[0]), output["forces"].detach().numpy(), output["virials"].detach().numpy()[0]
    )


def exact_forces(module: torch.nn.Module) -> torch.nn.Module:
    """The module with the derivative of its Chebyshev functions, where it has any: torch's own have none.

    Without, mace-torch's forces and stresses are not the derivatives of its energy. The module is changed in place, and
    is no longer one to save.
    """
    basis = module.radial_embedding.bessel_fn
    if type(basis).__name__ == "ChebychevBasis":
        basis.forward = partial(_chebyshev, basis.n.numel())
    return module


def _chebyshev(n: int, x: torch.Tensor) -> torch.Tensor:
    """(P, n) polynomials of degree 1 to n of (P, 1) values, by recurrence."""
    values = [torch.ones_like(x), x]
    for _ in range(n - 1):
        values.append(2 * x * values[-1] - values[-2])
    return torch.cat(values[1 : n + 1], dim=-1)


def torch_inputs(module: torch.nn.Module, structure: Structure, head: int = 0) -> dict[str, Any]:
    """One structure (Å) as mace-torch's input dictionary, every pair in both directions."""
    dtype = module.r_max.dtype
    pairs = neighbor_pairs(structure, float(module.r_max))
    fractional = np.zeros((len(pairs.shift), 3))
    if structure.pbc.any():
        fractional = np.linalg.lstsq(structure.cell.T, pairs.shift.T, rcond=None)[0].T.round()
    sender = np.concatenate([pairs.sender, pairs.receiver])
    receiver = np.concatenate([pairs.receiver, pairs.sender])
    one_hot = structure.numbers[:, None] == module.atomic_numbers.numpy()
    return {
        "positions": torch.tensor(structure.positions, dtype=dtype),
        "node_attrs": torch.tensor(one_hot, dtype=dtype),
        "edge_index": torch.tensor(np.stack([sender, receiver]), dtype=torch.int64),
        "shifts": torch.tensor(np.concatenate([pairs.shift, -pairs.shift]), dtype=dtype),
        "unit_shifts": torch.tensor(np.concatenate([fractional, -fractional]), dtype=dtype),
        "cell": torch.tensor(structure.cell, dtype=dtype),
        "batch": torch.zeros(len(structure), dtype=torch.int64),
        "ptr": torch.tensor([0, len(structure)]),
        "head": torch.tensor([head]),
    }
