"""What a store holds: N structures, as HDF5 shows them padded with zeros to the A atoms of the largest (see packed.py).

Positions, forces, cells and virials are in float64 or float32. Energies are in float64 always, because a total energy
of -1e5 kJ/mol in float32 is exact to 0.004 kJ/mol only.
"""

from typing import NamedTuple

import numpy as np

FORMAT_VERSION = "4"
"""Root attribute ``forgefield_format``. Stores of format 3 were padded whatever sizes they held."""

ATTRIBUTES = (
    *("forgefield_format", "created_by", "dataset", "split", "units", "isolated_atoms"),
    *("source", "source_sha256", "source_first_frame"),
)
"""Root attributes, some of which may be absent. Units and isolated_atoms are JSON; each of the last line is a list in
JSON, and source_first_frame the number in all files of the first frame of each."""

DIGEST = "attributes_sha256"
"""Root attribute with the digest of those."""


class Column(NamedTuple):
    """One dataset of a store: the shape of a row and the type; None is the store's own floating type."""

    tail: tuple[int, ...]
    dtype: type | None
    meaning: str


def columns(max_atoms: int, has_virial: bool) -> dict[str, Column]:
    """The datasets at the root of a store, each with N rows."""
    a = max_atoms
    layout = {
        "R": Column((a, 3), None, "positions"),
        "species": Column((a,), np.uint8, "atomic number, 0 = padding"),
        "mask": Column((a,), np.bool_, "real atoms"),
        "U": Column((), np.float64, "energy"),
        "F": Column((a, 3), None, "forces"),
        "box": Column((3, 3), None, "cell vectors as rows"),
        "pbc": Column((3,), np.bool_, "periodic along each cell vector"),
        "U_weight": Column((), np.float64, "0 where there is no energy, else its weight"),
        "F_weight": Column((), np.float64, "0 where there are no forces, else their weight"),
        "n_atoms": Column((), np.int32, "real atoms"),
        "source_index": Column((), np.int64, "frame number in the source"),
        "checksum": Column((), np.uint64, "of the row's other columns without mask, see checksums.py"),
    }
    if has_virial:
        layout["virial"] = Column((3, 3), None, "-stress x volume")
        layout["virial_weight"] = Column((), np.float64, "0 where there is no virial, else its weight")
    return layout
