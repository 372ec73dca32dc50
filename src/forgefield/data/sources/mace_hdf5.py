"""The HDF5 files that mace-torch's ``mace_prepare_data`` writes: config_batch_*/config_*, in eV and Å."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from forgefield.data.sources.frames import RawFrame, ReadOptions
from forgefield.data.sources.hdf5_groups import open_hdf5
from forgefield.errors import UserError


def holds_batches(file: h5py.File) -> bool:
    """Whether an HDF5 file is mace-torch's."""
    return any(name.startswith("config_batch_") for name in file)


def read_batches(path: Path, options: ReadOptions) -> Iterator[RawFrame]:
    """Stream the structures in the order in which mace-torch reads them.

    Raises:
        UserError: the file is damaged.
    """
    with open_hdf5(path, options) as file:
        for batch in _numbered(file):
            for group in _numbered(file[batch]):
                try:
                    yield _frame(file[batch][group])
                except KeyError as error:
                    raise UserError(f"{path}, {batch}/{group}: {error.args[0]}; write the file again") from None


def _numbered(group: h5py.Group) -> list[str]:
    """config_0, config_1, ..., config_10: by their numbers, not as text."""
    return sorted((name for name in group if re.search(r"_\d+$", name)), key=lambda name: int(name.split("_")[-1]))


def _frame(group: h5py.Group) -> RawFrame:
    values = {key: _value(item) for key, item in group["properties"].items()}
    weights = {key: _value(item) for key, item in group.get("property_weights", {}).items()}
    for key, weight in weights.items():
        if weight == 0:  # what was missing has a weight of zero, and numbers that mean nothing
            values.pop(key, None)
    kept = {key: _value(group[key]) for key in ("config_type", "weight", "head") if key in group}
    values = {key: value for key, value in (kept | values).items() if value is not None}
    cell, pbc = (_value(group[key]) for key in ("cell", "pbc"))
    return RawFrame(
        group["atomic_numbers"][()],
        group["positions"][()],
        np.zeros((3, 3)) if cell is None else cell,
        np.zeros(3, bool) if pbc is None else pbc,
        values,
    )


def _value(item: h5py.Dataset) -> Any:
    """mace-torch writes the word None for what it does not have."""
    value = item[()]
    value = value.decode() if isinstance(value, bytes) else value
    return None if isinstance(value, str) and value == "None" else value
