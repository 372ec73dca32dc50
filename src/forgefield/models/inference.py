"""Energies, forces and stresses of any number of structures, in order and in bounded memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, NamedTuple, Protocol

import numpy as np
from ase.data import chemical_symbols

from forgefield.config.messages import did_you_mean
from forgefield.data.batching import needed_capacity, shift_energy
from forgefield.data.neighbors import NeighborPairs, neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.errors import FrameError, UserError
from forgefield.models.potential import Potential

PRECISIONS = ("float64", "float32")
# neighbor slots of one batch; bounds its memory whatever the sizes of the structures
MAX_SLOTS = 65536


Engine = Literal["jax", "torch"]
Wanted = Literal["energy", "forces", "virial"]
"""What is computed: ``forces`` means the energy too, and ``virial`` all three."""


class Computed(NamedTuple):
    """Energies (B,) in eV, forces (N, 3) in eV/Å and virials (B, 3, 3) in eV in float64; None if not wanted."""

    energies: np.ndarray
    forces: np.ndarray | None
    virials: np.ndarray | None


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


class BatchFunction(Protocol):
    """Computes one batch; keeps what it compiles."""

    def __call__(self, structures: Sequence[Structure], pairs: Sequence[NeighborPairs]) -> Computed:
        """Energies without energy shifts."""
        ...

    def forget_sizes(self) -> None:
        """Round as if no batch had been computed before."""
        ...


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
    ):
        """At most ``batch`` structures are computed at once.

        ``precision`` is ``float64`` or ``float32``, whatever precision JAX and PyTorch are set to elsewhere.
        ``engine`` is asked of architectures that run on both; all others run on PyTorch. ``kernels`` is as the key of
        that name in the configuration.
        """
        self.potential, self.batch = potential, batch
        if precision not in PRECISIONS:
            raise UserError(f"precision {precision!r}: unknown{did_you_mean(precision, PRECISIONS)}")
        self._compute = _batch_function(potential, np.dtype(precision), wanted, engine, kernels)

    def __call__(self, structures: Iterable[Structure]) -> Iterator[Prediction]:
        """Predictions in the order of ``structures`` (Å).

        Raises:
            UserError: a structure is empty or has an element that the potential does not know, or a number that goes in
                or comes out is not finite; names the frame.
        """
        for group, pairs in self._groups(structures):
            yield from self._predict(group, pairs)

    def forget_sizes(self) -> None:
        """Round what follows as if nothing had been predicted before, and keep what was compiled."""
        self._compute.forget_sizes()

    def _groups(self, structures: Iterable[Structure]) -> Iterator[tuple[list[Structure], list[NeighborPairs]]]:
        """Consecutive structures with their pairs, as many as fit one batch."""
        group: list[Structure] = []
        pairs: list[NeighborPairs] = []
        for structure in structures:
            if not len(structure):
                raise FrameError(structure.source_index, "no atoms; remove the frame")
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

    def _predict(self, group: Sequence[Structure], pairs: Sequence[NeighborPairs]) -> Iterator[Prediction]:
        energies, forces, virials = self._compute(group, pairs)
        start = 0
        for i, structure in enumerate(group):
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
    potential: Potential, dtype: np.dtype, wanted: Wanted, engine: Engine, kernels: str
) -> BatchFunction:
    """One of the two engines is enough for an installation, so only the one that is needed is imported."""
    if potential.architecture == "mace" and engine == "jax":
        from forgefield.models.jax_batches import JaxBatches

        return JaxBatches(potential, dtype, wanted, kernels)
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
