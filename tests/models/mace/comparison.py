"""Energies, forces, virials and the parameter gradient of a loss: by this package, and by mace-torch.

The loss is the sum of log(1 + E^2 + sum of F^2) over structures (eV, eV/Å), so that each of them counts about the same.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

from forgefield.data.batching import Capacity, Graph, needed_capacity, pack_graph
from forgefield.data.neighbors import neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.models.energy import energy_forces_virial, energy_function
from forgefield.models.mace.torch_reference import exact_forces, quiet_mace, torch_inputs
from forgefield.models.potential import Potential
from forgefield.models.pytorch.building import default_dtype


class Results(NamedTuple):
    """One entry per structure: eV without energy shifts, eV/Å, eV."""

    energy: list[float]
    forces: list[np.ndarray]
    virial: list[np.ndarray]


Gradient = dict[str, np.ndarray]


def packed(
    structures: Sequence[Structure], potential: Potential, capacity: Capacity | None = None, dtype: str = "float64"
) -> Graph:
    """A batch as small as it can be, unless another size is asked for."""
    pairs = [neighbor_pairs(s, potential.cutoff) for s in structures]
    needed = needed_capacity(structures, pairs)
    return pack_graph(structures, pairs, potential.elements, potential.cutoff, capacity or needed, np.dtype(dtype))


def evaluation(potential: Potential) -> Callable:
    """A function of parameters and graph for energies, forces and virials."""
    return jax.jit(energy_forces_virial(energy_function(potential)))


def evaluation_with_gradient(potential: Potential) -> Callable:
    """A function of parameters and graph: ((loss, (energies, forces, virials)), gradient)."""
    evaluate = energy_forces_virial(energy_function(potential))

    def loss(parameters, graph):
        energy, forces, virial = evaluate(parameters, graph)
        squares = jax.ops.segment_sum(jnp.sum(forces**2, axis=1), graph.atom_structure, len(energy))
        return jnp.sum(jnp.log(1 + energy**2 + squares)), (energy, forces, virial)

    return jax.jit(jax.value_and_grad(loss, has_aux=True))


def parameters_in(potential: Potential, dtype: str) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, dtype) for name, value in potential.parameters.items()}


def by_structure(outputs: Sequence[jax.Array], structures: Sequence[Structure]) -> Results:
    """Energies, forces and virials of a batch, without its padding."""
    energy, forces, virial = (np.asarray(output, np.float64) for output in outputs)
    ends = np.cumsum([len(s) for s in structures])
    return Results(list(energy[: len(ends)]), np.split(forces[: ends[-1]], ends[:-1]), list(virial[: len(ends)]))


def by_jax(potential: Potential, structures: Sequence[Structure], dtype: str = "float64") -> Results:
    """All structures in one batch."""
    with jax.enable_x64(dtype == "float64"):
        graph = packed(structures, potential, dtype=dtype)
        return by_structure(evaluation(potential)(parameters_in(potential, dtype), graph), structures)


def gradient_by_jax(potential: Potential, structures: Sequence[Structure]) -> tuple[Results, Gradient]:
    """In float64, all structures in one batch."""
    with jax.enable_x64(True):
        evaluate, parameters = evaluation_with_gradient(potential), parameters_in(potential, "float64")
        (_, outputs), gradient = evaluate(parameters, packed(structures, potential))
    return by_structure(outputs, structures), {name: np.asarray(value) for name, value in gradient.items()}


def gradient_by_mace_torch(module: torch.nn.Module, structures: Sequence[Structure]) -> tuple[Results, Gradient]:
    """In float64, one structure at a time; forces are derivatives of the energy also with Chebyshev functions."""
    exact_forces(module.double()).requires_grad_(True).zero_grad()  # files may hold frozen parameters
    results = Results([], [], [])
    with quiet_mace(), default_dtype(torch.float64):
        for structure in structures:
            output = module(torch_inputs(module, structure), training=True, compute_virials=True)
            # plain MACE gives contributions, the first of which is that of the energy shifts
            energy = output.get("interaction_energy")
            energy = output["contributions"][:, 1:].sum() if energy is None else energy.sum()
            torch.log(1 + energy**2 + output["forces"].square().sum()).backward()
            results.energy.append(energy.item())
            results.forces.append(output["forces"].detach().numpy())
            results.virial.append(output["virials"].detach().numpy()[0])
    return results, {name: p.grad.numpy() for name, p in module.named_parameters() if p.numel()}


def differences(found: Results, expected: Results) -> dict[str, float]:
    """The largest difference of each quantity, relative to the largest value in the same structure.

    Values below 0.01 only show what is left of larger ones that cancel, and count as 0.01.
    """
    return {
        quantity: max(
            float(np.abs(a - b).max() / max(np.abs(b).max(), 0.01))
            for a, b in zip(getattr(found, quantity), getattr(expected, quantity), strict=True)
        )
        for quantity in Results._fields
    }


def gradient_difference(found: Gradient, expected: Gradient) -> float:
    """The largest difference relative to the largest value for the same parameter."""
    assert found.keys() == expected.keys()
    return max(
        float(np.abs(found[name] - value).max() / (np.abs(value).max() or 1.0)) for name, value in expected.items()
    )
