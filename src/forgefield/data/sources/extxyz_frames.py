"""The text of one frame of extended XYZ, read with little work.

ASE's reader makes a Python tuple of each atom and an ``Atoms`` of each frame, and then several copies. Here only the
comment line goes through ASE; columns of numbers are read as such. The result is the same, bit by bit.
"""

import re
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import ase.data
import numpy as np
from ase.calculators.calculator import all_properties
from ase.io.extxyz import REV_PROPERTY_NAME_MAP, key_val_str_to_dict, per_config_properties

from forgefield.data.sources.ase_files import DATABASE_ENTRIES, NO_VALUES
from forgefield.data.sources.frames import RawFrame

NUMBER_TYPES = {"R": (float, np.float64), "I": (int, np.int32)}
ONE_NUMBER = ("energy", "free_energy", "magmom")  # which ASE leaves as they are, and makes arrays of all other results
UNUSUAL = {"initial_charges", "move_mask", *DATABASE_ENTRIES}  # of which ASE, or ``raw_frame``, makes something else


SIX = re.compile(rb"""(?<!\S)(stress|virial)\s*=\s*["'{\[]([^"'}\]]*)["'}\]]""")
VOIGT = (0, 5, 4, 5, 1, 3, 4, 3, 2)  # place of each of nine numbers among xx, yy, zz, yz, xz, xy


class Columns(NamedTuple):
    """Some columns of a frame: ASE's name of them, the type letter of extended XYZ, the first, and the one behind."""

    name: str
    kind: str
    start: int
    stop: int


class _AtomicNumbers(dict[bytes, int]):
    def __missing__(self, word: bytes) -> int:
        self[word] = ase.data.atomic_numbers[word.decode().capitalize()]
        return self[word]


ATOMIC_NUMBERS = _AtomicNumbers()


def read_frame(text: bytes) -> RawFrame | None:
    """A frame of the usual kind; None for any other, which ASE has to read or to refuse."""
    try:
        return _read(text) if text.isascii() else None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return None


def with_nine_numbers(text: bytes) -> bytes:
    """A frame's text where a stress or virial of six numbers, which ASE refuses, has become one of nine."""
    count, comment, *atoms = text.split(b"\n", 2)
    return b"\n".join([count, SIX.sub(_nine, comment), *atoms])


def _nine(found: re.Match[bytes]) -> bytes:
    words = found[2].replace(b",", b" ").split()
    return found[1] + b'="' + b" ".join(words[i] for i in VOIGT) + b'"' if len(words) == 6 else found[0]


def _read(text: bytes) -> RawFrame | None:
    count, comment, *atoms = text.splitlines()
    line = comment.decode().strip()
    info = key_val_str_to_dict(line) if line else {}
    columns = [*zip(*map(bytes.split, atoms), strict=True)]
    layout = _layout(info.pop("Properties", "species:S:1:pos:R:3"))
    arrays = {c.name: _array(c.name, c.kind, columns[c.start : c.stop]) for c in layout}
    numbers, positions = arrays.pop("symbols", None), arrays.pop("positions")
    numbers = np.asarray(arrays.pop("numbers", numbers), int)
    n = int(count)
    is_whole = len(numbers) == n and positions.shape == (n, 3) and layout[-1].stop <= len(columns)
    if not is_whole or not UNUSUAL.isdisjoint(arrays | info):
        return None
    cell = info.pop("Lattice", None)
    pbc = np.zeros(3, bool)
    pbc[:] = info.pop("pbc", cell is not None)
    cell = np.zeros((3, 3)) if cell is None else np.array(cell.T, float, order="C")
    return RawFrame(numbers, positions, cell, pbc, _values(info, arrays))


@lru_cache
def _layout(properties: str) -> tuple[Columns, ...]:
    words, layout, stop = properties.split(":"), [], 0
    for name, kind, width in zip(words[::3], words[1::3], words[2::3], strict=True):
        start, stop = stop, stop + int(width)
        layout.append(Columns(REV_PROPERTY_NAME_MAP.get(name, name), kind, start, stop))
    if len({c.name for c in layout}) < len(layout):
        raise ValueError("columns of the same name")
    return tuple(layout)


def _array(name: str, kind: str, columns: list[tuple[bytes, ...]]) -> np.ndarray:
    """(n,) or (n, columns)."""
    if name == "symbols":
        if kind != "S":  # numbers may be types of another program, and ASE refuses them
            raise ValueError("symbols that are no words")
        (words,) = columns
        return np.array([ATOMIC_NUMBERS[word] for word in words])
    convert, dtype = NUMBER_TYPES[kind]
    n, width = len(columns[0]), len(columns)
    values = np.fromiter(map(convert, chain.from_iterable(columns)), dtype, n * width)
    return values if width == 1 else np.ascontiguousarray(values.reshape(width, n).T)


def _values(info: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What ASE would keep beside atoms and cell, its calculator's results last."""
    results = {key: np.array(value, float) for key, value in arrays.items() if key in all_properties}
    for key in [key for key in info if key in per_config_properties]:
        if (value := info.pop(key)) is None:
            continue
        if key == "stress" and value.shape == (3, 3):
            value = value.ravel()[[0, 4, 8, 5, 2, 1]]  # in the order of Voigt
        results[key] = value if key in ONE_NUMBER else np.array(value, float)
    values = {**info, **{key: value for key, value in arrays.items() if key not in all_properties}, **results}
    return {key: value for key, value in values.items() if key not in NO_VALUES}
