"""A potential as functions for JAX: energies, and forces and virials as their derivatives."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp

from forgefield.data.batching import Graph
from forgefield.errors import UserError
from forgefield.models.kernels import AskedKernels, choose_kernels
from forgefield.models.mace import model as mace
from forgefield.models.potential import Potential

EnergyFunction = Callable[..., jax.Array]


def energy_function(potential: Potential, kernels: AskedKernels = "auto") -> EnergyFunction:
    """The function ``energies(parameters, graph, strain=None)``, (B,) eV without the potential's energy shifts.

    It computes in the dtype of the parameters. ``strain`` (B, 3, 3) strains atoms and cell by its symmetric part.
    ``kernels`` is as the key of that name in the configuration.

    Raises:
        UserError: the architecture has no JAX implementation, or the kernels are not installed.
    """
    if potential.architecture != "mace":
        raise UserError(f"architecture {potential.architecture!r} does not run on JAX; only 'mace' does")
    return mace.energy_function(potential.config, potential.buffers, potential.elements, choose_kernels(kernels))


def energy_and_forces(energy: EnergyFunction) -> Callable[[Mapping, Graph], tuple[jax.Array, jax.Array]]:
    """A function of parameters and graph that gives energies (B,) in eV and forces (N, 3) in eV/Å."""

    def evaluate(parameters: Mapping, graph: Graph) -> tuple[jax.Array, jax.Array]:
        def total(positions):
            energies = energy(parameters, graph._replace(positions=positions))
            return energies.sum(), energies

        gradient, energies = jax.grad(total, has_aux=True)(graph.positions)
        return energies, -gradient

    return evaluate


def energy_forces_virial(energy: EnergyFunction) -> Callable[[Mapping, Graph], tuple[jax.Array, ...]]:
    """Like :func:`energy_and_forces`, with virials (B, 3, 3) in eV: minus the derivative by strain."""

    def evaluate(parameters: Mapping, graph: Graph) -> tuple[jax.Array, jax.Array, jax.Array]:
        def total(positions, strain):
            energies = energy(parameters, graph._replace(positions=positions), strain)
            return energies.sum(), energies

        unstrained = jnp.zeros((graph.n_atoms.shape[0], 3, 3), graph.positions.dtype)
        (by_position, by_strain), energies = jax.grad(total, argnums=(0, 1), has_aux=True)(graph.positions, unstrained)
        return energies, -by_position, -by_strain

    return evaluate
