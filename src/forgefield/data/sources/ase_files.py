"""Every format that ASE reads, frame by frame."""

import difflib
import lzma
import re
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ase.db
import ase.io
import numpy as np
from ase.io.formats import filetype, get_compression, ioformats, open_with_compression

from forgefield.data.sources.frames import RawFrame
from forgefield.errors import UserError

DATABASE_ENTRIES = ("data", "key_value_pairs")
"""Where the rows of an ASE database keep a user's own values."""
NOT_A_NUMBER = r"(?:could not convert string to float|invalid literal for int\(\) with base 10): (.+)"
"""What Python says where a file has a word instead of a number."""
SET_FORMAT = "set `format`"
"""What someone who configures a dataset can do about a format that was not recognized, or taken for another."""


def ase_format(path: Path, name: str, remedy: str = SET_FORMAT) -> str:
    """The ASE format of a file: ``name``, or what ASE takes it for where that is "auto".

    Args:
        path: the file.
        name: a format, or "auto".
        remedy: what messages say that a user can do about an unknown format.

    Raises:
        UserError: ASE knows no format of that name, or does not recognise the file.
    """
    if name == "auto":
        try:
            form = filetype(str(path))
        except Exception:
            form = None
        if form not in ioformats:
            raise UserError(f"{path}: of a format that ASE does not know; {remedy}")
        return form
    if name not in ioformats:
        nearest = difflib.get_close_matches(name, [*ioformats, "npz", "auto"], n=1, cutoff=0.0)[0]
        raise UserError(f"format {name!r}: unknown to ASE; did you mean {nearest!r}? `ase info --formats` lists them")
    return name


def read_ase(path: Path, form: str, warn: list[str], remedy: str = SET_FORMAT) -> Iterator[RawFrame]:
    """Stream the frames of one file; what ASE warns about goes to ``warn``, each text once.

    Raises:
        UserError: ASE cannot read the file; the message gives the reason, and ``remedy`` as the way out.
    """
    with _uncompressed(path) as plain:
        yield from _frames(path, plain, form, warn, remedy)


def _frames(path: Path, plain: Path, form: str, warn: list[str], remedy: str) -> Iterator[RawFrame]:
    """Frames of ``plain``, which messages call by the name ``path`` that the user knows."""
    frames = (
        _database(plain) if form in ("db", "json") else ase.io.iread(plain, ":", form, do_not_split_by_at_sign=True)
    )
    number = 0
    while True:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                atoms = next(frames, None)
            except Exception as error:
                hint = "give the run's vasprun.xml instead" if form == "vasp-out" else f"repair it or {remedy}"
                raise UserError(
                    f"{path}, frame {number}: ASE cannot read it as {form}: {_reason(error)}; {hint}"
                ) from None
        warn += sorted({f"{path}: ASE: {_text(w.message)}" for w in caught} - set(warn))
        if atoms is None:
            return
        yield _raw(atoms)
        number += 1


@contextmanager
def _uncompressed(path: Path) -> Iterator[Path]:
    """The file, or a plain copy: ASE seeks in its files, and in compressed ones each seek reads from the beginning."""
    if get_compression(str(path))[1] is None:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        try:
            with open_with_compression(str(path), "rb") as source, open(plain, "wb") as target:
                shutil.copyfileobj(source, target)
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise UserError(f"{path}: cannot be decompressed ({_text(error)}); get the file again") from None
        yield plain


def _database(path: Path) -> Iterator[ase.Atoms]:
    """The rows of an ASE database with a user's own values, which ``ase.io`` leaves out."""
    with ase.db.connect(path, serial=True) as database:
        for row in database.select():
            yield row.toatoms(add_additional_information=True)


def _raw(atoms: ase.Atoms) -> RawFrame:
    """Labels come from the raw results: ``get_forces`` would set those of constrained atoms to zero."""
    values = {**atoms.info, **atoms.arrays}
    for entry in DATABASE_ENTRIES:
        if isinstance(values.get(entry), dict):
            values |= values.pop(entry)
    if atoms.calc is not None:
        values |= {key: value for key, value in atoms.calc.results.items() if value is not None}
    values = {key: value for key, value in values.items() if key not in ("numbers", "positions", "unique_id")}
    return RawFrame(atoms.numbers, atoms.positions, np.array(atoms.cell), atoms.pbc, values)


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
    return " ".join(str(error).split()) or type(error).__name__
