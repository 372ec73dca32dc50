"""From reference files to the three HDF5 stores of a dataset and the report of how they came about."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import ase.data
import numpy as np

from forgefield.config.dataset import DatasetConfig
from forgefield.config.messages import with_full_keys
from forgefield.config.split import Split
from forgefield.data.duplicates import warnings_about
from forgefield.data.reading import Reading
from forgefield.data.sources import Source, find_files
from forgefield.data.split_files import ranges, read_split
from forgefield.data.splits import PARTS, Parts, split_frames, split_groups, split_stratified
from forgefield.data.spool import Spool
from forgefield.data.workplace import workplace
from forgefield.data.writing import write_part
from forgefield.errors import MachineError, UserError
from forgefield.files import sha256_of, sync, write_json


def convert_dataset(
    name: str, config: DatasetConfig, output: Path, *, complete: bool = False, jobs: int = 1
) -> dict[str, Any]:
    """Read a dataset once, check every frame, and write its stores and report.

    Either all of train.h5, valid.h5, conversion.json and, where the split has one, test.h5 appear in ``output``, or it
    stays as it was. Memory does not grow with the number of frames, but for a few numbers of each. Warnings go to
    stderr and into the report.

    Args:
        name: of the dataset.
        config: where the frames are and how to read, split and store them.
        output: directory for the results.
        complete: whether a frame without a label that others have is a mistake, instead of one that does not count in
            that label's error.
        jobs: processes that convert large extended XYZ files; the results do not depend on it.

    Returns:
        The report, the content of conversion.json.

    Raises:
        UserError: any mistake in the config or the files; the message names file, frame or key.
        MachineError: the results cannot be written.
    """
    files = dataset_files(name, config)
    output = Path(output)
    try:
        with workplace(output) as work:
            with _named(name):
                report = _convert_in(work, name, config, files, complete, jobs)
            _publish(work, output, list(config.split.shares))
    except OSError as error:
        raise MachineError(f"{output}: cannot be written ({error}); free space or choose another place") from None
    for warning in report["warnings"]:
        print(f"warning: dataset {name}: {warning}", file=sys.stderr)
    return report


def in_one_line(report: Mapping[str, Any], output: Path) -> str:
    """What became of the frames."""
    parts = ", ".join(f"{of_part['structures']} {part}" for part, of_part in report["split"].items() if part in PARTS)
    frames, reasons = report["frames"], ", ".join(f"{n} {reason}" for reason, n in report["rejected_for"].items())
    rejected = f"{frames['rejected']} rejected{f' ({reasons})' if reasons else ''}"
    return f"{output}: {parts}; of {frames['read']} frames {rejected}, {frames['in_no_part']} unused"


def dataset_files(name: str, config: DatasetConfig) -> dict[str, list[Path]]:
    """The files of each part, or of ``all`` parts together.

    Raises:
        UserError: a file is missing, empty, a directory or named twice.
    """
    if config.split.method != "files":
        return {"all": find_files(config.source)}
    files = {part: find_files(paths) for part, paths in config.split.shares.items()}
    part_of: dict[Path, str] = {}
    for part, paths in files.items():
        for path in paths:
            if (other := part_of.setdefault(path.resolve(), part)) != part:
                keys = " and as ".join(f"{p}_path (datasets.{name}.split.{p})" for p in (other, part))
                raise UserError(f"{path}: given as {keys}; give each part a file of its own")
    return files


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Messages begin with the dataset, and name keys as they stand in the configuration."""
    try:
        yield
    except UserError as error:
        raise UserError(f"datasets.{name}: {with_full_keys(str(error), f'datasets.{name}', DatasetConfig)}") from None


def _convert_in(
    work: Path, name: str, config: DatasetConfig, files: dict[str, list[Path]], complete: bool, jobs: int
) -> dict[str, Any]:
    """Write stores and report into a directory of their own."""
    with Spool(work) as spool:
        reading = Reading(Source(config, list(chain(*files.values())), jobs), spool, config.trust_units)
        if complete:
            reading.require_complete()
        hashes = {str(path): sha256_of(path) for path in chain(*files.values())}
        if config.split.method == "files":
            parts = _split_by_files(reading, {part: len(paths) for part, paths in files.items()})
        else:
            parts = _split(config.split, reading, list(hashes.values()))
        for part in parts:
            own = {str(path): hashes[str(path)] for path in files.get(part, chain(*files.values()))}
            write_part(work / f"{part}.h5", part, parts[part], name, config, reading, own)
    report = _report(name, config, reading, parts, list(hashes.values()))
    write_json(work / "conversion.json", report)
    return report


def _split(split: Split, reading: Reading, hashes: list[str]) -> Parts:
    """Part -> positions of its structures in the spool; ``hashes`` is the sha256 of each file of the source."""
    if split.method == "frames":
        return read_split(Path(split.file).expanduser(), reading.indices, hashes)
    if split.method == "group":
        return split_groups(reading.source.groups.numbers, split.by, split.shares, split.seed)
    if split.stratify:
        return split_stratified(reading.source.groups.numbers, reading.sizes, split.shares, split.seed)
    return split_frames(len(reading.spool), split.method, split.shares, split.seed)


def _split_by_files(reading: Reading, n_files: dict[str, int]) -> Parts:
    """The same, where each part has files of its own."""
    parts, first, file = {}, 0, 0
    for part in n_files:
        frames = sum(f["frames"] for f in reading.source.files[file : file + n_files[part]])
        parts[part] = np.flatnonzero((reading.indices >= first) & (reading.indices < first + frames))
        if len(parts[part]) == 0:
            raise UserError(f"split.{part}: no usable frame in its files; see the reasons by converting them alone")
        first, file = first + frames, file + n_files[part]
    return parts


def _report(
    name: str, config: DatasetConfig, reading: Reading, parts: dict[str, np.ndarray], hashes: list[str]
) -> dict[str, Any]:
    store = config.store.units.as_units()
    sources = [
        {
            "path": file["path"],
            "sha256": sha256,
            "format": file["format"],
            "frames": file["frames"],
            "first_frame": file["first_frame"],
            "units": file["units"].names(),
            "factors_to_store": asdict(file["units"].factors(store)),
        }
        for file, sha256 in zip(reading.source.files, hashes, strict=True)
    ]
    repeated = reading.fingerprints.repeated(reading.indices, parts)
    used = sum(len(positions) for positions in parts.values())
    return {
        "dataset": name,
        "sources": sources,
        "store": {"units": store.names(), "dtype": config.store.dtype},
        "keys": reading.source.keys.described | reading.source.weights.found,
        "keys_not_read": sorted(
            set(reading.source.keys.unused) - {*reading.source.weights.found.values(), config.split.by}
        ),
        "frames": {
            "read": sum(file["frames"] for file in reading.source.files),
            "usable": len(reading.sizes),
            "rejected": reading.rejected.count,
            "in_no_part": len(reading.sizes) - used,
        },
        "labels": dict(reading.labels),
        "elements": [ase.data.chemical_symbols[z] for z in reading.elements],
        "atoms": {"least": int(reading.sizes.min()), "most": int(reading.sizes.max()), "all": int(reading.sizes.sum())},
        "split": config.split.model_dump(include={"method", "seed", "by", "stratify", "file"})
        | {part: _part_report(reading.indices[positions]) for part, positions in parts.items()},
        "rejected": [asdict(frame) for frame in reading.rejected.listed],
        "rejected_for": dict(sorted(reading.rejected.reasons.items())),
        "isolated_atoms": {"unit": "eV", "energies": reading.source.isolated.by_symbol()},
        "energies_against_forces": reading.consistency.found and reading.consistency.found._asdict(),
        "repeated_frames": repeated,
        "warnings": reading.warnings + warnings_about(repeated),
    }


def _part_report(indices: np.ndarray) -> dict[str, Any]:
    return {"structures": len(indices), "frames": ranges(indices)}


def _publish(work: Path, output: Path, parts: list[str]) -> None:
    """Put the results in their place; the report goes first and comes last, since it stands for all of them."""
    output.mkdir(exist_ok=True)
    for file in ["conversion.json", *(f"{part}.h5" for part in PARTS if part not in parts)]:
        (output / file).unlink(missing_ok=True)
    for file in [*(f"{part}.h5" for part in parts), "conversion.json"]:
        os.replace(work / file, output / file)
    sync(output)
