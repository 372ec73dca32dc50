"""Energies, forces and stresses of any number of structures, in order and in bounded memory."""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
from ase.data import chemical_symbols

from forgefield.config.messages import did_you_mean
from forgefield.data.batching import needed_capacity, shift_energy
from forgefield.data.neighbors import neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.errors import FrameError, UserError
from forgefield.models.batch_function import BatchFunction, Computed, Group, Wanted
from forgefield.models.potential import Potential

PRECISIONS = ("float64", "float32")
# neighbor slots of one batch; bounds its memory whatever the sizes of the structures
MAX_SLOTS = 65536


Engine = Literal["jax", "torch"]


@dataclass(frozen=True)
class Prediction:
    """What a potential says about one structure.

    Attributes:
        energy: eV, energy shifts included.
        forces: (n, 3) eV/Å, or None if not wanted.
        stress: (3, 3) eV/Å^3, or None if not wanted or the structure is not periodic.
    """

    energy: float
    forces: np.ndarray | None
    stress: np.ndarray | None


class Prepared(NamedTuple):
    """Batches that are read, packed and ready to be computed."""

    groups: list[Group]
    packed: Any


class Predictor:
    """A potential ready for use, in JAX or in PyTorch."""

    def __init__(
        self,
        potential: Potential,
        *,
        batch: int = 32,
        precision: str = "float64",
        wanted: Wanted = "forces",
        engine: Engine = "jax",
        kernels: str = "auto",
        devices: int = 1,
    ):
        """At most ``batch`` structures are computed at once, on each of ``devices`` local devices (of JAX).

        ``precision`` is ``float64`` or ``float32``, whatever precision JAX and PyTorch are set to elsewhere.
        ``engine`` is asked of architectures that run on both; all others run on PyTorch. ``kernels`` is as the key of
        that name in the configuration.
        """
        self.potential, self.batch = potential, batch
        if precision not in PRECISIONS:
            raise UserError(f"precision {precision!r}: unknown{did_you_mean(precision, PRECISIONS)}")
        self._function = _batch_function(potential, np.dtype(precision), wanted, engine, kernels, devices)

    def alike(self, potential: Potential) -> "Predictor | None":
        """The same for another potential, with what is compiled in common; None where more than numbers differ."""
        own = self.potential
        same = (potential.architecture, potential.config, potential.elements, potential.cutoff) == (
            (own.architecture, own.config, own.elements, own.cutoff)
        )
        if not same or potential.buffers.keys() != own.buffers.keys():
            return None
        if not all(np.array_equal(values, own.buffers[name]) for name, values in potential.buffers.items()):
            return None
        other = copy(self)
        other.potential, other._function = potential, self._function.alike(potential)
        return other

    def __call__(self, structures: Iterable[Structure]) -> Iterator[Prediction]:
        """Predictions in the order of ``structures`` (Å).

        Raises:
            UserError: a structure is empty or has an element that the potential does not know, or a number that goes in
                or comes out is not finite; names the frame.
        """
        for prepared in self.prepared(self.groups(structures)):
            yield from self.predict(prepared)

    def forget_sizes(self) -> None:
        """Round what follows as if nothing had been predicted before, and keep what was compiled."""
        self._function.forget_sizes()

    def groups(self, structures: Iterable[Structure]) -> Iterator[Group]:
        """Consecutive structures with their pairs, as many as fit one batch."""
        found = Group([], [])
        for structure in structures:
            if not len(structure):
                raise FrameError(structure.source_index, "no atoms; remove the frame")
            check_elements(structure, self.potential)
            pairs = neighbor_pairs(structure, self.potential.cutoff)
            needed = needed_capacity([*found.structures, structure], [*found.pairs, pairs])
            if found.structures and (needed.structures > self.batch or needed.slots > MAX_SLOTS):
                yield found
                found = Group([], [])
            found.structures.append(structure)
            found.pairs.append(pairs)
        if found.structures:
            yield found

    def prepared(self, groups: Iterable[Group]) -> Iterator[Prepared]:
        """As many batches at a time as there are devices, for :meth:`predict` of this predictor and all alike."""
        groups = iter(groups)
        while some := list(islice(groups, self._function.devices)):
            yield Prepared(some, self._function.pack(some))

    def predict(self, prepared: Prepared) -> Iterator[Prediction]:
        """Predictions for all structures of some batches, in order."""
        for group, computed in zip(prepared.groups, self._function.compute(prepared.packed), strict=True):
            yield from self._predictions(group.structures, computed)

    def _predictions(self, structures: Sequence[Structure], computed: Computed) -> Iterator[Prediction]:
        energies, forces, virials = computed
        start = 0
        for i, structure in enumerate(structures):
            end = start + len(structure)
            prediction = Prediction(
                float(energies[i]) + shift_energy(structure, self.potential.energy_shifts),
                None if forces is None else forces[start:end],
                None if virials is None else _stress(virials[i], structure),
            )
            check_finite(prediction, structure)
            yield prediction
            start = end


def _batch_function(
    potential: Potential, dtype: np.dtype, wanted: Wanted, engine: Engine, kernels: str, devices: int
) -> BatchFunction:
    """One of the two engines is enough for an installation, so only the one that is needed is imported."""
    if potential.architecture == "mace" and engine == "jax":
        from forgefield.models.jax_batches import JaxBatches

        return JaxBatches(potential, dtype, wanted, kernels, devices)
    from forgefield.models.pytorch.batches import TorchBatches

    return TorchBatches(potential, dtype, wanted)


def predict(
    potential: Potential,
    structures: Iterable[Structure],
    *,
    batch: int = 32,
    precision: str = "float64",
    wanted: Wanted = "forces",
    engine: Engine = "jax",
) -> Iterator[Prediction]:
    """Stream predictions in order; see :class:`Predictor`, which to keep for repeated use."""
    return Predictor(potential, batch=batch, precision=precision, wanted=wanted, engine=engine)(structures)


def fastest_engine(backend: str) -> Engine:
    """JAX on a CPU; PyTorch for a run by Fabric where it has a GPU, which JAX need not have, or JAX is missing."""
    if backend == "jax" or not find_spec("torch"):
        return "jax"
    import torch

    return "torch" if torch.cuda.is_available() or not find_spec("jax") else "jax"


def check_finite(prediction: Prediction, structure: Structure) -> None:
    """Refuse results that are no numbers."""
    for name in ("energy", "forces", "stress"):
        value = getattr(prediction, name)
        if value is not None and not np.isfinite(value).all():
            raise FrameError(
                structure.source_index,
                f"the model gives {name} NaN or infinite; look at the frame's distances, or choose another model",
            )


def check_elements(structure: Structure, potential: Potential) -> None:
    """Refuse a structure with an element that the potential does not know."""
    unknown = sorted({int(z) for z in structure.numbers} - set(potential.elements))
    if unknown:
        known = ", ".join(chemical_symbols[z] for z in potential.elements)
        raise FrameError(
            structure.source_index,
            f"element {chemical_symbols[unknown[0]]} is unknown to the model "
            f"(it knows {known}); remove the frame or choose another model",
        )


def _stress(virial: np.ndarray, structure: Structure) -> np.ndarray | None:
    return -virial / structure.volume if structure.pbc.any() and structure.volume > 0 else None
