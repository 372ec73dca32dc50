"""Energies, forces and virials of batches in JAX, of few shapes, on one or several local devices."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from forgefield.data.batching import ATOM_STEP, Capacity, Graph, needed_capacity, pack_graph, round_up
from forgefield.models.batch_function import Computed, Group, Wanted
from forgefield.models.energy import EnergyFunction, energy_and_forces, energy_forces_virial, energy_function
from forgefield.models.potential import Potential

# new shapes grow on a ladder of this ratio, and a compiled shape is used again up to twice the needed work
RATIO, WASTE = 1.25, 2.0
AXIS = "device"


class JaxBatches:
    """A :class:`~forgefield.models.batch_function.BatchFunction`; keeps its compiled functions between calls.

    Several devices compute a batch each, all of one shape, in one call of one compiled function.
    """

    def __init__(self, potential: Potential, dtype: np.dtype, wanted: Wanted, kernels: str, devices: int = 1) -> None:
        self.potential, self.dtype, self.devices = potential, dtype, devices
        self._mesh = Mesh(np.array(jax.local_devices()[:devices]), (AXIS,), axis_types=(AxisType.Auto,))
        by_wanted = {"energy": _energy_alone, "forces": energy_and_forces, "virial": energy_forces_virial}
        self._evaluate = jax.jit(self._over_devices(by_wanted[wanted](energy_function(potential, kernels))))
        self._capacities: list[Capacity] = []
        self._parameters = self._placed(potential.parameters)

    def alike(self, potential: Potential) -> "JaxBatches":
        other = copy(self)
        other.potential, other._parameters = potential, self._placed(potential.parameters)
        return other

    def pack(self, groups: Sequence[Group]) -> list[Graph]:
        """A graph of each batch, all of one shape."""
        needed = [needed_capacity(*group) for group in groups]
        capacity = self._capacity(Capacity(*map(max, zip(*needed, strict=True))))
        elements, cutoff = self.potential.elements, self.potential.cutoff
        return [pack_graph(*group, elements, cutoff, capacity, self.dtype.type) for group in groups]

    def compute(self, packed: Sequence[Graph]) -> list[Computed]:
        filled = [*packed, *packed[-1:] * (self.devices - len(packed))]
        graph = jax.tree.map(lambda *arrays: np.stack(arrays), *filled) if self.devices > 1 else packed[0]
        with self._precision():
            found = [np.asarray(x, np.float64) for x in self._evaluate(self._parameters, graph)]
        nothing = (None,) * (len(Computed._fields) - len(found))
        if self.devices == 1:
            return [Computed(*found, *nothing)]
        return [Computed(*(x[i] for x in found), *nothing) for i in range(len(packed))]

    def forget_sizes(self) -> None:
        """Batches are padded to shapes that others had before, and rounding depends on the shape."""
        self._capacities.clear()

    def _precision(self):
        return jax.enable_x64(self.dtype == np.float64)

    def _placed(self, parameters: Mapping[str, np.ndarray]) -> dict[str, jax.Array]:
        """The parameters on all devices."""
        arrays = {name: np.asarray(value, self.dtype) for name, value in parameters.items()}
        with self._precision():
            return jax.device_put(arrays, NamedSharding(self._mesh, PartitionSpec()) if self.devices > 1 else None)

    def _over_devices(self, evaluate: Callable) -> Callable:
        """``evaluate`` on graphs with a leading axis over devices, where there are several."""
        if self.devices == 1:
            return evaluate

        def on_device(parameters: Mapping, graphs: Graph) -> tuple[jax.Array, ...]:
            return jax.tree.map(lambda x: x[None], evaluate(parameters, jax.tree.map(lambda x: x[0], graphs)))

        shards = PartitionSpec(AXIS)
        # custom kernels do not tell along which mesh axes their results vary
        return jax.shard_map(
            on_device, mesh=self._mesh, in_specs=(PartitionSpec(), shards), out_specs=shards, check_vma=False
        )

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
