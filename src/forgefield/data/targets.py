"""Labels besides energies, forces and virials, and weights of labels under other names than their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from forgefield.data.batching import Target
from forgefield.data.structures import Structure
from forgefield.errors import UserError

# the fields of a structure that hold the labels of every data set
FIELDS = {"U": "energy", "F": "forces", "virial": "virial"}
# of NumPy: bool, integers, floating point
NUMBERS = "biuf"


def default_weight(target: str) -> str:
    """The name of the weights of a target where nothing says another."""
    return f"{target}_weight"


@dataclass(frozen=True)
class Targets:
    """Which further values of structures are labels, and which are weights.

    Attributes:
        names: of additional labels, in units of their own.
        weights: by target, which may also be ``U``, ``F`` or ``virial``, the name of the value that is its weight. An
            additional label's weight is ``NAME_weight`` without it, or 1 where there is no such value.
    """

    names: tuple[str, ...] = ()
    weights: Mapping[str, str] = field(default_factory=dict)

    @property
    def required(self) -> tuple[str, ...]:
        """Values that every structure has."""
        return tuple(dict.fromkeys((*self.names, *self.weights.values())))

    @property
    def optional(self) -> tuple[str, ...]:
        """Weights that may be there."""
        return tuple(default_weight(name) for name in self.names if name not in self.weights)

    def is_weight(self, key: str) -> bool:
        return key in self.weights.values() or key in self.optional

    def labelled(self, structure: Structure, where: str) -> Structure:
        """The structure with its weights in place, and the additional labels and ``NAME_weight`` alone in ``extra``.

        Args:
            structure: with the values in ``extra``.
            where: what it is called in messages.

        Raises:
            UserError: a value is missing, a weight is negative or NaN, or a label is not finite and its weight not 0.
        """
        changes = {}
        for target in FIELDS.keys() & self.weights.keys():
            weight, label = self._weight(structure, target, where), FIELDS[target]
            changes |= {f"{label}_weight": weight} | ({} if weight else {label: None})
        extra = {}
        for name in self.names:
            weight, value = self._weight(structure, name, where), np.asarray(_value(structure, name, where), float)
            if weight and not np.isfinite(value).all():
                raise UserError(f"{where}: {name} is not finite; repair it, or give it the weight 0")
            extra |= {name: value if weight else np.zeros_like(value), default_weight(name): weight}
        return replace(structure, extra=extra, **changes)

    def _weight(self, structure: Structure, target: str, where: str) -> float:
        key = self.weights.get(target, default_weight(target))
        if target not in self.weights and key not in structure.extra:
            return 1.0
        weight = float(_value(structure, key, where))
        if not 0 <= weight < np.inf:
            raise UserError(f"{where}: {key} is {weight}; a weight is a number from 0 up")
        return weight

    def absent(self, structure: Structure) -> Structure:
        """A labelled structure without its labels."""
        weights = {default_weight(name): 0.0 for name in self.names}
        return replace(structure, energy=None, forces=None, virial=None, extra={**structure.extra, **weights})

    def packed(self, structures: Sequence[Structure], places: int, dtype: np.dtype) -> dict[str, Target]:
        """Additional labels of labelled structures, with a leading axis over ``places``, those without one being 0."""
        return {
            name: Target(*(_stacked(structures, key, places, dtype) for key in (name, default_weight(name))))
            for name in self.names
        }


NO_TARGETS = Targets()


def _value(structure: Structure, key: str, where: str) -> np.ndarray | float:
    if key not in structure.extra:
        raise UserError(f"{where}: no value {key!r} in extra; give each structure one")
    return structure.extra[key]


def _stacked(structures: Sequence[Structure], key: str, places: int, dtype: np.dtype) -> np.ndarray:
    values = np.array([s.extra[key] for s in structures], dtype)
    return np.concatenate([values, np.zeros((places - len(values), *values.shape[1:]), dtype)])
