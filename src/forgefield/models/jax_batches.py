"""Energies, forces and virials of a batch in JAX, of few shapes."""

import math
from collections.abc import Callable, Sequence

import jax
import numpy as np

from forgefield.data.batching import ATOM_STEP, Capacity, needed_capacity, pack_graph, round_up
from forgefield.data.neighbors import NeighborPairs
from forgefield.data.structures import Structure
from forgefield.models.energy import EnergyFunction, energy_and_forces, energy_forces_virial, energy_function
from forgefield.models.inference import Computed, Wanted
from forgefield.models.potential import Potential

# new shapes grow on a ladder of this ratio, and a compiled shape is used again up to twice the needed work
RATIO, WASTE = 1.25, 2.0


class JaxBatches:
    """A :class:`~forgefield.models.inference.BatchFunction`; keeps its compiled functions between calls."""

    def __init__(self, potential: Potential, dtype: np.dtype, wanted: Wanted, kernels: str) -> None:
        self.potential, self.dtype = potential, dtype
        energy = energy_function(potential, kernels)
        by_wanted = {"energy": _energy_alone, "forces": energy_and_forces, "virial": energy_forces_virial}
        self._evaluate = jax.jit(by_wanted[wanted](energy))
        self._capacities: list[Capacity] = []
        with self._precision():
            self._parameters = jax.device_put({k: np.asarray(v, dtype) for k, v in potential.parameters.items()})

    def __call__(self, structures: Sequence[Structure], pairs: Sequence[NeighborPairs]) -> Computed:
        capacity = self._capacity(needed_capacity(structures, pairs))
        elements, cutoff = self.potential.elements, self.potential.cutoff
        graph = pack_graph(structures, pairs, elements, cutoff, capacity, self.dtype.type)
        with self._precision():
            found = [np.asarray(x, np.float64) for x in self._evaluate(self._parameters, graph)]
        return Computed(*found, *(None,) * (len(Computed._fields) - len(found)))

    def forget_sizes(self) -> None:
        """Batches are padded to shapes that others had before, and rounding depends on the shape."""
        self._capacities.clear()

    def _precision(self):
        return jax.enable_x64(self.dtype == np.float64)

    def _capacity(self, needed: Capacity) -> Capacity:
        """A shape that is already compiled and not too large, or a new one."""
        work = needed.slots * WASTE
        for known in self._capacities:
            if known.holds(needed) and known.slots <= work:
                return known
        new = Capacity(*(_next_on_ladder(size) for size in needed))
        new = new._replace(atoms=round_up(new.atoms, ATOM_STEP))
        self._capacities.append(new)
        return new


def _energy_alone(energy: EnergyFunction) -> Callable[..., tuple[jax.Array]]:
    return lambda parameters, graph: (energy(parameters, graph),)


def _next_on_ladder(size: int) -> int:
    return math.ceil(RATIO ** math.ceil(math.log(size, RATIO) - 1e-9))
