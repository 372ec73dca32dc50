"""Structures that a program made itself, checked before they are packed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from forgefield.data.structures import Structure
from forgefield.data.targets import NO_TARGETS, NUMBERS, Targets
from forgefield.errors import UserError


def given_structures(structures: Sequence[Structure], targets: Targets = NO_TARGETS) -> list[Structure]:
    """The structures of a list, numbered by their places in it where none says which frame it is.

    Raises:
        UserError: something else than a structure is in the list, an array has not its shape, or a further value that
            ``targets`` asks for is missing; names the place.
    """
    for place, structure in enumerate(structures):
        if not isinstance(structure, Structure):
            raise UserError(
                f"dataset: item {place} is {_kind(structure)}; expected a forgefield Structure, in eV and Å"
            )
        _check_shapes(structure, place)
        _check_extra(structure, place, targets, structures[0].extra)
    if len({s.source_index for s in structures}) > 1:
        return list(structures)
    return [replace(s, source_index=place) for place, s in enumerate(structures)]


def refuse(dataset: object) -> UserError:
    """What to say of an object that is no data set."""
    return UserError(
        f"dataset: {_kind(dataset)} is no data set; give the path of a store that `forgefield convert` wrote, an open "
        "one, or a list of forgefield's Structures"
    )


def _check_shapes(structure: Structure, place: int) -> None:
    n = np.size(structure.numbers)
    if n == 0:
        raise UserError(f"dataset: structure {place} has no atoms; leave it out")
    shapes = {"numbers": (n,), "positions": (n, 3), "cell": (3, 3), "pbc": (3,)}
    shapes |= {"energy": (), "forces": (n, 3), "virial": (3, 3)}
    for name, shape in shapes.items():
        value = getattr(structure, name)
        if value is None:
            continue
        if name != "energy" and not isinstance(value, np.ndarray):
            raise UserError(f"dataset: {name} of structure {place} is {_kind(value)}; make it a NumPy array")
        if np.shape(value) != shape:
            raise UserError(f"dataset: {name} of structure {place} has shape {np.shape(value)}; expected {shape}")


def _check_extra(structure: Structure, place: int, targets: Targets, first: Mapping[str, Any]) -> None:
    """A weight is a number, and an additional label has the shape that it has in the first structure."""
    for key in (*targets.required, *(key for key in targets.optional if key in structure.extra)):
        if key not in structure.extra:
            raise UserError(f"dataset: structure {place} has no value {key!r} in extra; give each structure one")
        value = np.asarray(structure.extra[key])
        if value.dtype.kind not in NUMBERS:
            raise UserError(f"dataset: {key} of structure {place} is no number and no array of numbers")
        expected = () if targets.is_weight(key) else np.shape(first[key])
        if value.shape != expected:
            raise UserError(f"dataset: {key} of structure {place} has shape {value.shape}; expected {expected}")


def _kind(value: object) -> str:
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return "None" if value is None else f"of type {name}"
