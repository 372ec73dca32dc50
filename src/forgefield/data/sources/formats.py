"""Which reader a file is for, by its name and content."""

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import h5py
from ase.io.formats import ioformats

from forgefield.data.sources import ase_files, cp2k, deepmd, hdf5_groups, mace_hdf5, npz
from forgefield.data.sources.dpdata_files import PREFIX, read_dpdata
from forgefield.data.sources.extxyz import read_extxyz
from forgefield.data.sources.frames import RawFrame, ReadOptions
from forgefield.data.sources.units import units_of_format
from forgefield.errors import UserError
from forgefield.units import Units

Stated = dict[str, str]
"""Kind of quantity -> the unit that a file or its format states for it."""


def _nothing_stated(path: Path, options: ReadOptions) -> Stated:
    return {}


def _in_ev(path: Path, options: ReadOptions) -> Stated:
    return Units().names()


@dataclass(frozen=True)
class Format:
    """One kind of file.

    Attributes:
        name: what the config's ``format`` calls it.
        recognizes: whether a file or directory is of it; an open HDF5 file for those formats.
        read: streams the frames.
        stated: the units that a file states; where it states none and ``assumed`` is false, the config has to.
        assumed: whether numbers are eV and Å unless the config says otherwise.
    """

    name: str
    recognizes: Callable[[Path], bool] | Callable[[h5py.File], bool]
    read: Callable[[Path, ReadOptions], Iterator[RawFrame]]
    stated: Callable[[Path, ReadOptions], Stated] = _nothing_stated
    assumed: bool = False


BY_PATH = (
    Format("npz", npz.is_npz, npz.read_npz, npz.stated_units),
    Format("deepmd", deepmd.is_system, deepmd.read_folder, assumed=True),
    Format("cp2k", cp2k.is_trajectory, cp2k.read_cp2k, _in_ev),
)
BY_HDF5_CONTENT = (
    Format("mace-hdf5", mace_hdf5.holds_batches, mace_hdf5.read_batches, assumed=True),
    Format("deepmd-hdf5", deepmd.holds_systems, deepmd.read_hdf5_systems, assumed=True),
    Format("hdf5", hdf5_groups.holds_groups, hdf5_groups.read_groups, hdf5_groups.stated_units),
)
OWN = {form.name: form for form in (*BY_PATH, *BY_HDF5_CONTENT)}


def find_format(path: Path, name: str = "auto", options: ReadOptions | None = None) -> Format:
    """The format of a file that is not compressed: that of a name, or what the file is taken for.

    Raises:
        UserError: no format has that name, or the file is of none.
    """
    options = options or ReadOptions()
    if name == "auto":
        if form := next((form for form in BY_PATH if form.recognizes(path)), None):
            return form
        if path.is_file() and h5py.is_hdf5(path):
            return _hdf5_format(path, options)
        return _ase_format(ase_files.recognize(path, options.remedy))
    if name in OWN:
        return OWN[name]
    if name.startswith(PREFIX):
        read = partial(read_dpdata, form=name.removeprefix(PREFIX))
        return Format(name, lambda path: False, read, _in_ev, assumed=True)
    if name not in ioformats:
        nearest = difflib.get_close_matches(name, [*OWN, "auto", *ioformats], n=1, cutoff=0.0)[0]
        raise UserError(f"format {name!r}: unknown; did you mean {nearest!r}? `ase info --formats` lists ASE's")
    return _ase_format(name)


def _ase_format(name: str) -> Format:
    read = read_extxyz if name == "extxyz" else partial(ase_files.read_ase, form=name)
    stated = units_of_format(name)
    return Format(name, lambda path: False, read, lambda path, options: stated, assumed=True)


def _hdf5_format(path: Path, options: ReadOptions) -> Format:
    with hdf5_groups.open_hdf5(path, options) as file:
        if "forgefield_format" in file.attrs:
            raise UserError(f"{path}: a store that is converted already; give the reference file it was made from")
        for form in BY_HDF5_CONTENT:
            if form.recognizes(file):
                return form
        groups = ", ".join(list(file)[:5]) or "nothing"
    raise UserError(
        f"{path}: an HDF5 file of no known layout: no group has both atomic numbers and positions (it has {groups});"
        f" {options.remedy}"
    )


@contextmanager
def named_as(plain: Path, name: str, options: ReadOptions, way_out: str = "") -> Iterator[None]:
    """Messages about a decompressed copy speak of the file that the user knows, and of a further ``way_out``."""
    try:
        yield
    except UserError as error:
        raise UserError(str(error).replace(str(plain), name) + way_out) from None
    finally:
        options.warnings[:] = [text.replace(str(plain), name) for text in options.warnings]


def read_frames(name: str, plain: Path, form: Format, options: ReadOptions) -> Iterator[RawFrame]:
    """The frames of a file that messages call ``name``."""
    with named_as(plain, name, options):
        yield from form.read(plain, options)
