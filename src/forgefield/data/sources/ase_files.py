"""Every format that ASE reads, frame by frame."""

import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import ase.db
import ase.io
import numpy as np
from ase.io.formats import filetype, ioformats

from forgefield.data.sources.convergence import unconverged_frames
from forgefield.data.sources.frames import RawFrame, ReadOptions
from forgefield.errors import UserError

DATABASE_ENTRIES = ("data", "key_value_pairs")
"""Where the rows of an ASE database keep a user's own values."""
NO_VALUES = ("numbers", "positions", "unique_id")
"""What is no value of a frame beside its atoms."""
CASTEP_MD = b"BEGIN header"
"""In the first line of CASTEP's trajectories, whose names end in .md."""
BOM = b"\xef\xbb\xbf"
"""With which some editors begin a text."""
NOT_A_NUMBER = r"(?:could not convert string to float|invalid literal for int\(\) with base 10): (.+)"
"""What Python says where a file has a word instead of a number."""


def recognize(path: Path, remedy: str) -> str:
    """The ASE format that ASE takes a file for.

    Raises:
        UserError: none; ``remedy`` is what the message says that a user can do.
    """
    if path.suffix == ".lmdb":
        raise UserError(
            f"{path}: an LMDB file of an unknown kind; rename it to .aselmdb if ASE wrote it; files of pickled objects"
            " can run any code and are not read"
        )
    if _is_extxyz(path):  # whatever its name
        return "extxyz"
    try:
        form = filetype(str(path))
    except Exception:
        form = None
    if form == "castep-md" and not _begins_with(path, CASTEP_MD):  # else any README.md is one
        form = None
    if form not in ioformats:
        raise UserError(f"{path}: of a format that ASE does not know; {remedy}")
    return form


def _is_extxyz(path: Path) -> bool:
    with open(path, "rb") as file:
        count, comment = (file.readline(5000).removeprefix(BOM) for _ in range(2))
    return count.strip().isdigit() and b"Properties=" in comment


def _begins_with(path: Path, words: bytes) -> bool:
    with open(path, "rb") as file:
        return words in file.read(1000)


def read_ase(path: Path, options: ReadOptions, form: str) -> Iterator[RawFrame]:
    """Stream the frames of one file; what ASE warns about goes to ``options.warnings``.

    Raises:
        UserError: ASE cannot read the file; the message gives the reason and a way out.
    """
    unconverged = unconverged_frames(path, form)
    frames = _database(path) if form in ("db", "json") else ase.io.iread(path, ":", form, do_not_split_by_at_sign=True)
    number = 0
    while True:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                atoms = next(frames, None)
            except ImportError as error:
                raise UserError(f"{path}: {_package(error)}") from None
            except Exception as error:
                raise unreadable(path, number, form, error, options.remedy) from None
        options.warnings.extend(text for text in warning_texts(path, caught) if text not in options.warnings)
        if atoms is None:
            return
        yield raw_frame(atoms, unconverged.get(number))
        number += 1


def unreadable(path: Path, number: int, form: str, error: Exception, remedy: str) -> UserError:
    """What to say where ASE fails at a frame."""
    hint = (
        "give the run's vasprun.xml instead, or set `format: dpdata:vasp/outcar`"
        if form == "vasp-out"
        else f"repair it or {remedy}"
    )
    return UserError(f"{path}, frame {number}: ASE cannot read it as {form}: {_reason(error)}; {hint}")


def warning_texts(path: Path, caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """What ASE warned about, each text once."""
    return sorted({f"{path}: ASE: {_text(warning.message)}" for warning in caught})


def _database(path: Path) -> Iterator[ase.Atoms]:
    """The rows of an ASE database with a user's own values, which ``ase.io`` leaves out."""
    only_read = {"readonly": True} if path.suffix == ".aselmdb" else {}
    with ase.db.connect(path, serial=True, **only_read) as database:
        for row in database.select():
            yield row.toatoms(add_additional_information=True)


def raw_frame(atoms: ase.Atoms, unconverged: str | None = None) -> RawFrame:
    """Labels come from the raw results: ``get_forces`` would set those of constrained atoms to zero."""
    values = {**atoms.info, **atoms.arrays}
    for entry in DATABASE_ENTRIES:
        if isinstance(values.get(entry), dict):
            values |= values.pop(entry)
    if atoms.calc is not None:
        values |= {key: value for key, value in atoms.calc.results.items() if value is not None}
    values = {key: value for key, value in values.items() if key not in NO_VALUES}
    return RawFrame(atoms.numbers, atoms.positions, np.array(atoms.cell), atoms.pbc, values, unconverged)


def _package(error: ImportError) -> str:
    """What to install for a format of which ASE has no more than the name."""
    package = (error.name or str(error)).split(".")[0].replace("_", "-")
    return f"reading it needs the package {package}; pip install {package}"


def _reason(error: Exception) -> str:
    """Why ASE failed, as far as its exception tells someone who knows the file and not ASE's code."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, KeyError):
        return f"{_text(error)} is unknown"
    if isinstance(error, IndexError | TypeError | AttributeError | AssertionError | RuntimeError):
        return "its content is laid out in another way, or ends too early"
    text = _text(error).removeprefix("ase.io.extxyz: ").replace(r"\n", "")
    return re.sub(NOT_A_NUMBER, r"\1 where a number is expected", text)


def _text(error: object) -> str:
    return " ".join(str(error).split()).removesuffix(".") or type(error).__name__
