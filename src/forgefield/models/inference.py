"""Energies, forces and stresses of any number of structures, in order and in bounded memory."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from ase.data import chemical_symbols

from forgefield.config.messages import did_you_mean
from forgefield.data.batching import (
    ATOM_STEP,
    Capacity,
    Graph,
    needed_capacity,
    pack_graph,
    round_up,
    shift_energy,
)
from forgefield.data.neighbors import NeighborPairs, neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.models.energy import energy_and_forces, energy_forces_virial, energy_function
from forgefield.models.kernels import AskedKernels
from forgefield.models.potential import Potential

PRECISIONS = ("float64", "float32")
# neighbor slots of one batch; bounds its memory whatever the sizes of the structures
MAX_SLOTS = 65536
# new shapes grow on a ladder of this ratio, and a compiled shape is used again up to twice the needed work
RATIO, WASTE = 1.25, 2.0


@dataclass(frozen=True)
class Prediction:
    """What a potential says about one structure.

    Attributes:
        energy: eV, energy shifts included.
        forces: (n, 3) eV/Å.
        stress: (3, 3) eV/Å^3, or None if not asked for or the structure is not periodic.
    """

    energy: float
    forces: np.ndarray
    stress: np.ndarray | None


class Predictor:
    """A potential ready for use; keeps its compiled functions between calls."""

    def __init__(
        self,
        potential: Potential,
        *,
        batch: int = 32,
        precision: str = "float64",
        virial: bool = False,
        kernels: AskedKernels = "auto",
    ):
        """At most ``batch`` structures are computed at once, with stresses if ``virial``.

        ``precision`` is ``float64`` or ``float32``, whatever precision JAX is set to elsewhere.
        ``kernels`` is as the key of that name in the configuration.
        """
        self.potential, self.batch, self.virial = potential, batch, virial
        if precision not in PRECISIONS:
            raise UserError(f"precision {precision!r}: unknown{did_you_mean(precision, PRECISIONS)}")
        self.dtype = np.dtype(precision)
        energy = energy_function(potential, kernels)
        self._evaluate = jax.jit(energy_forces_virial(energy) if virial else energy_and_forces(energy))
        self._capacities: list[Capacity] = []
        with self._precision():
            self._parameters = jax.device_put({k: np.asarray(v, self.dtype) for k, v in potential.parameters.items()})

    def __call__(self, structures: Iterable[Structure]) -> Iterator[Prediction]:
        """Predictions in the order of ``structures`` (Å).

        Raises:
            UserError: a structure is empty or has an element that the potential does not know, or a number that goes in
                or comes out is not finite; names the frame.
        """
        for group, pairs in self._groups(structures):
            yield from self._predict(group, pairs)

    def _precision(self):
        return jax.enable_x64(self.dtype == np.float64)

    def _groups(self, structures: Iterable[Structure]) -> Iterator[tuple[list[Structure], list[NeighborPairs]]]:
        """Consecutive structures with their pairs, as many as fit one batch."""
        group: list[Structure] = []
        pairs: list[NeighborPairs] = []
        for structure in structures:
            if not len(structure):
                raise UserError(f"frame {structure.source_index}: no atoms; remove the frame")
            check_elements(structure, self.potential)
            found = neighbor_pairs(structure, self.potential.cutoff)
            needed = needed_capacity([*group, structure], [*pairs, found])
            if group and (needed.structures > self.batch or needed.slots > MAX_SLOTS):
                yield group, pairs
                group, pairs = [], []
            group.append(structure)
            pairs.append(found)
        if group:
            yield group, pairs

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

    def _predict(self, group: Sequence[Structure], pairs: Sequence[NeighborPairs]) -> Iterator[Prediction]:
        graph = self._pack(group, pairs)
        with self._precision():
            energies, forces, *virials = (np.asarray(x, np.float64) for x in self._evaluate(self._parameters, graph))
        start = 0
        for i, structure in enumerate(group):
            end = start + len(structure)
            prediction = Prediction(
                float(energies[i]) + shift_energy(structure, self.potential.energy_shifts),
                forces[start:end],
                _stress(virials[0][i], structure) if virials else None,
            )
            check_finite(prediction, structure)
            yield prediction
            start = end

    def _pack(self, group: Sequence[Structure], pairs: Sequence[NeighborPairs]) -> Graph:
        capacity = self._capacity(needed_capacity(group, pairs))
        return pack_graph(group, pairs, self.potential.elements, self.potential.cutoff, capacity, self.dtype.type)


def predict(
    potential: Potential,
    structures: Iterable[Structure],
    *,
    batch: int = 32,
    precision: str = "float64",
    virial: bool = False,
) -> Iterator[Prediction]:
    """Stream predictions in order; see :class:`Predictor`, which to keep for repeated use."""
    return Predictor(potential, batch=batch, precision=precision, virial=virial)(structures)


def check_finite(prediction: Prediction, structure: Structure) -> None:
    """Refuse results that are no numbers."""
    for name in ("energy", "forces", "stress"):
        value = getattr(prediction, name)
        if value is not None and not np.isfinite(value).all():
            raise UserError(
                f"frame {structure.source_index}: the model gives {name} NaN or infinite; "
                "look at the frame's distances, or choose another model"
            )


def check_elements(structure: Structure, potential: Potential) -> None:
    """Refuse a structure with an element that the potential does not know."""
    unknown = sorted({int(z) for z in structure.numbers} - set(potential.elements))
    if unknown:
        known = ", ".join(chemical_symbols[z] for z in potential.elements)
        raise UserError(
            f"frame {structure.source_index}: element {chemical_symbols[unknown[0]]} is unknown to the model "
            f"(it knows {known}); remove the frame or choose another model"
        )


def _next_on_ladder(size: int) -> int:
    return math.ceil(RATIO ** math.ceil(math.log(size, RATIO) - 1e-9))


def _stress(virial: np.ndarray, structure: Structure) -> np.ndarray | None:
    return -virial / structure.volume if structure.pbc.any() and structure.volume > 0 else None
