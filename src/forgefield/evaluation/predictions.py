"""The predictions file: reference and predictions for every structure of one split, in eV and Å.

Groups ``reference`` and one per variant of the model hold ``energy`` (N,), ``forces`` (N, A, 3) and, where the split
has virials, ``stress`` (N, 3, 3); the root holds ``n_atoms`` (N,), ``source_index`` (N,) and ``species`` (N, A). Rows
are in the order of the source, which that of a packed store is not. ``sources`` is the JSON text of the source files,
each with the number in all of them of its first frame, where the split knows them. A is the largest structure; entries
beyond ``n_atoms`` are 0. A reference that is absent or has weight 0 is NaN, and so is the stress of a structure without
a periodic cell. The attribute ``units`` of each dataset names its unit, ``model`` of the root the sha256 of the trained
model, as in ``metrics.json``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import h5py
import numpy as np

from forgefield import __version__
from forgefield.data.store.opening import DAMAGES, damaged, open_file
from forgefield.errors import UserError
from forgefield.evaluation.metrics_file import AGAIN

FORMAT = 1
CHUNK_BYTES = 2**18
# read at once at most, padding and all, so that memory is bounded however large the largest structure is
ATOMS = 2**20
UNITS = {"energy": "eV", "forces": "eV/angstrom", "stress": "eV/angstrom^3"}


def create_predictions(
    file: h5py.File,
    split: str,
    variants: Sequence[str],
    *,
    n: int,
    max_atoms: int,
    stress: bool,
    model: str,
    sources: Sequence[tuple[str, int]] = (),
) -> None:
    """Lay out an empty predictions file for ``n`` structures."""
    file.attrs.update(
        {
            "forgefield_format": FORMAT,
            "split": split,
            "variants": list(variants),
            "model": model,
            "created_by": f"forgefield {__version__}",
        }
    )
    file["sources"] = np.bytes_(json.dumps([*sources]).encode())
    for group in ("reference", *variants):
        for quantity, tail in _tails(max_atoms).items():
            if quantity not in UNITS or (quantity == "stress" and not stress):
                continue
            _create(file, f"{group}/{quantity}", (n, *tail), np.float64).attrs["units"] = UNITS[quantity]
    _create(file, "n_atoms", (n,), np.int32)
    _create(file, "source_index", (n,), np.int64)
    _create(file, "species", (n, max_atoms), np.uint8)


def _create(file: h5py.File, name: str, shape: tuple[int, ...], dtype: type) -> h5py.Dataset:
    if shape[0] == 0:
        return file.create_dataset(name, shape, dtype)
    row = int(np.prod(shape[1:])) * np.dtype(dtype).itemsize
    chunk = (min(shape[0], max(1, CHUNK_BYTES // row)), *shape[1:])
    return file.create_dataset(name, shape, dtype, chunks=chunk, compression="gzip", compression_opts=1, shuffle=True)


def write_rows(file: h5py.File, start: int, columns: Mapping[str, np.ndarray]) -> None:
    """Write columns, named by their path in the file, from row ``start`` on; atoms may stop short of A."""
    for name, values in columns.items():
        stop = start + len(values)
        if values.ndim > 1 and not name.endswith("/stress"):
            file[name][start:stop, : values.shape[1]] = values
        else:
            file[name][start:stop] = values


def read_rows(path: Path, names: Sequence[str], chunk: int = 1024) -> Iterator[dict[str, np.ndarray]]:
    """Stream columns in chunks of rows, at most ``chunk`` at a time.

    Raises:
        UserError: no such file, or it is damaged, of another format or lacks a column.
    """
    with open_file(path, "evaluate") as file:
        try:
            n = _checked_length(path, file, names)
            chunk = max(1, min(chunk, ATOMS // max(file["species"].shape[1], 1)))
            for start in range(0, n, chunk):
                yield {name: file[name][start : start + chunk] for name in names}
        except DAMAGES:
            raise damaged(path, "evaluate") from None


def read_sources(path: Path) -> list[tuple[str, int]]:
    """The files that the structures are from, with the number in all of them of the first frame of each; or nothing."""
    with open_file(path, "evaluate") as file:
        try:
            return [(name, frame) for name, frame in json.loads(file["sources"][()])] if "sources" in file else []
        except (*DAMAGES, TypeError):
            raise damaged(path, "evaluate") from None


def _checked_length(path: Path, file: h5py.File, names: Sequence[str]) -> int:
    """The number of rows, once all columns have it and the shapes of the format."""
    if (version := file.attrs.get("forgefield_format")) != FORMAT:
        raise UserError(f"{path}: predictions of format {version}, expected {FORMAT}; {AGAIN}")
    shapes = {name: file[name].shape if isinstance(file.get(name), h5py.Dataset) else None for name in names}
    n, most = (file["species"].shape if isinstance(file.get("species"), h5py.Dataset) else (0, 0))[:2]
    for name, shape in shapes.items():
        expected = (n, *(_tails(most) | {"species": (most,)}).get(name.rpartition("/")[2], ()))
        if shape != expected:
            raise UserError(f"{path}: {name} has shape {shape}, expected {expected}; {AGAIN}")
    return n


def _tails(most: int) -> dict[str, tuple[int, ...]]:
    """The shape of a row of each column that is not a number, where the largest structure has ``most`` atoms."""
    return {"energy": (), "forces": (most, 3), "stress": (3, 3), "species": (most,)}


def real_atoms(n_atoms: np.ndarray, width: int) -> np.ndarray:
    """(rows, width) True where a padded column holds an atom."""
    return np.arange(width) < n_atoms[:, None]
