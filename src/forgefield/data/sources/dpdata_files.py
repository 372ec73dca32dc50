"""Formats that dpdata reads, as ``dpdata:NAME`` with its own names; a user who needs them installs the package."""

import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from ase.data import atomic_numbers

from forgefield.data.sources.frames import RawFrame, ReadOptions
from forgefield.errors import UserError

PREFIX = "dpdata:"


def read_dpdata(path: Path, options: ReadOptions, form: str) -> Iterator[RawFrame]:
    """The frames of one file in eV and Å; dpdata has all of them in memory.

    Args:
        path: a file or directory.
        options: takes what dpdata warns about.
        form: dpdata's name of the format.

    Raises:
        UserError: dpdata is not installed, or cannot read the file.
    """
    data = _load(path, options, form)
    numbers = np.array([atomic_numbers[name] for name in data["atom_names"]])[data["atom_types"]]
    pbc = np.full(3, not data.get("nopbc", False))
    rows = {"energies": "energy", "forces": "forces", "virials": "virial"}
    for i, positions in enumerate(data["coords"]):
        cell = data["cells"][i] if pbc.all() else np.zeros((3, 3))
        yield RawFrame(
            numbers, positions, cell, pbc, {label: data[key][i] for key, label in rows.items() if key in data}
        )


def _load(path: Path, options: ReadOptions, form: str) -> dict[str, Any]:
    try:
        dpdata = import_module("dpdata")
    except ImportError:
        raise UserError(f"{path}: format {PREFIX}{form} needs the package dpdata; pip install dpdata") from None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            data = dpdata.LabeledSystem(str(path), fmt=form).data
        except (Exception, SystemExit) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UserError(f"{path}: dpdata cannot read it as {form}: {reason[:200]}; name another format") from None
    options.warnings.extend(sorted({f"{path}: dpdata: {w.message}" for w in caught}))
    return data
