"""The models that are timed: random weights, identical on both sides."""

import re

import numpy as np

from forgefield.models.mace.initial import initial_potential
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.potential import Potential

MODELS = ("32x0e", "64x0e", "128x0e", "64x0e+64x1o", "128x0e+128x1o")
R_MAX, N_LAYERS, SEED = 5.0, 2, 0
INDEPENDENT = 1e-6


def is_available(name: str) -> bool:
    """Whether this version can compute the model."""
    return _hidden_l(name) == 0 or "hidden_l_max" in MaceSettings.model_fields


def potential(name: str, elements: tuple[int, ...], avg_num_neighbors: float) -> Potential:
    """A model with random weights, its products in the fewest paths that span the same functions.

    mace-torch's time grows with the number of paths. It can use the fewest (``use_reduced_cg``), and its faster case
    is the one to compare with.
    """
    hidden = {"hidden_l_max": (_hidden_l(name),) * (N_LAYERS - 1) + (0,)} if _hidden_l(name) else {}
    settings = MaceSettings(
        r_max=R_MAX,
        hidden_channels=int(name.split("x")[0]),
        l_max=3,
        correlation=(3,) * N_LAYERS,
        interactions=("RealAgnosticResidualInteractionBlock",) * N_LAYERS,
        n_bessel=8,
        polynomial_cutoff=5,
        radial_mlp=(64, 64, 64),
        mlp_channels=16,
        avg_num_neighbors=avg_num_neighbors,
        **hidden,
    )
    made = initial_potential(elements, settings, SEED)
    _reduce_paths(made)
    return made


def _hidden_l(name: str) -> int:
    """The largest degree of hidden features, of a name such as 64x0e+64x1o."""
    if not re.fullmatch(r"(\d+)x0e(\+\1x1o)?", name):
        raise ValueError(f"{name!r} is no model here; write a number of channels as in 64x0e or 64x0e+64x1o")
    return int(name.endswith("1o"))


def _reduce_paths(made: Potential) -> None:
    """Replace each U tensor by a basis of the symmetric tensors it spans, and draw weights for that basis."""
    generator = np.random.default_rng(SEED)
    for name in [name for name in made.buffers if ".U_matrix_" in name]:
        contraction, _, order = name.partition("U_matrix_")
        basis = _symmetric_basis(made.buffers[name], int(order))
        paths = made.buffers[name].shape[-1]
        highest = max(int(n.rpartition("_")[2]) for n in made.buffers if n.startswith(f"{contraction}U_matrix_"))
        weight = contraction + ("weights_max" if int(order) == highest else f"weights.{highest - 1 - int(order)}")
        n_elements, found, channels = made.parameters[weight].shape
        assert found == paths
        made.buffers[name] = basis
        k = basis.shape[-1]
        made.parameters[weight] = generator.standard_normal((n_elements, k, channels)) / k


def _symmetric_basis(tensor: np.ndarray, order: int) -> np.ndarray:
    """The linearly independent paths (last axis) of a U tensor symmetrized over its ``order`` factors, of unit norm."""
    first = tensor.ndim - 1 - order
    symmetric = tensor
    for axis in range(1, order):
        # averaging over the places of one more factor at a time symmetrizes all of them
        swaps = [np.swapaxes(symmetric, first + axis, first + other) for other in range(axis)]
        symmetric = (symmetric + sum(swaps)) / (axis + 1)
    chosen, orthogonal = [], []
    for path in np.moveaxis(symmetric, -1, 0):
        rest = path - sum(np.vdot(o, path) * o for o in orthogonal)
        if np.linalg.norm(rest) > INDEPENDENT * np.linalg.norm(tensor):
            chosen.append(path / np.linalg.norm(path))
            orthogonal.append(rest / np.linalg.norm(rest))
    return np.stack(chosen, axis=-1)
