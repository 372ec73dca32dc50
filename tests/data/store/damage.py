"""Opens damaged copies of a store: PATH SEED COUNT. Each in a process of its own, since HDF5 may crash or hang.

Prints one word per copy: what became of it, and what was done to it.
"""

import os
import signal
import sys
from pathlib import Path

import h5py
import numpy as np

from forgefield.data.store import Store
from forgefield.data.store.validation import validate_store
from forgefield.errors import UserError

SECONDS = 20
ENDS = {0: "same", 2: "refused", 3: "wrong", 4: "uncaught"}


def content(path: Path) -> list[object]:
    """Everything that a store tells."""
    with Store(path) as store:
        fields = [[*vars(structure).values()] for structure in store.read(slice(None))]
        arrays = [x.tobytes() if isinstance(x, np.ndarray) else repr(x) for values in fields for x in values]
        told = [arrays, store.elements, store.units, store.attributes, store.has_virial]
    return [told, validate_store(path) | {"path": None}]


def outside_of_datasets(path: Path) -> np.ndarray:
    """Where in the file nothing but HDF5's own bookkeeping and the attributes is."""
    is_outside = np.ones(path.stat().st_size, bool)

    def mark(name: str, item: h5py.Dataset | h5py.Group) -> None:
        start = item.id.get_offset() if isinstance(item, h5py.Dataset) else None
        if start is not None:  # what is virtual lies nowhere
            is_outside[start : start + item.nbytes] = False

    with h5py.File(path) as file:
        file.visititems(mark)
    return np.flatnonzero(is_outside)


def damage(whole: bytes, outside: np.ndarray, random: np.random.Generator) -> tuple[str, bytes]:
    """One of several kinds of damage; flipped bits are mostly where no row's checksum is."""
    kind, spoilt = random.choice(["bit", "bit", "bit", "cut", "zeros"]), bytearray(whole)
    place = int(random.choice(outside)) if random.random() < 0.8 else int(random.integers(len(whole)))
    if kind == "bit":
        spoilt[place] ^= 1 << int(random.integers(8))
    elif kind == "cut":
        del spoilt[place:]
    else:
        end = min(len(whole), place + int(random.integers(1, 512)))
        spoilt[place:end] = bytes(end - place)
    return f"{kind}@{place}", bytes(spoilt)


def look(path: Path, expected: list[object]) -> str:
    """What becomes of a damaged file."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            os._exit(0 if content(path) == expected else 3)
        except UserError:
            os._exit(2)
        except BaseException:
            os._exit(4)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "hung" if code == -signal.SIGALRM else "crashed" if code < 0 else ENDS[code]


def main(path: Path, seed: int, count: int) -> None:
    random, whole, expected = np.random.default_rng(seed), path.read_bytes(), content(path)
    outside = outside_of_datasets(path)
    for _ in range(count):
        done, spoilt = damage(whole, outside, random)
        copy = path.with_name("spoilt.h5")
        copy.write_bytes(spoilt)
        print(look(copy, expected), done)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
