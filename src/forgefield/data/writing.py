"""From the structures that were read to the store of one part of the split."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from forgefield.config.dataset import DatasetConfig
from forgefield.data.progress import ConversionProgress
from forgefield.data.reading import Reading
from forgefield.data.store import StoreWriter
from forgefield.data.store.packed import is_worth_packing
from forgefield.data.structures import Structure
from forgefield.errors import UserError

BLOCK_ATOMS = 100_000  # atoms, padding included, written to a store at a time


def write_part(
    path: Path,
    part: str,
    positions: np.ndarray,
    name: str,
    config: DatasetConfig,
    reading: Reading,
    hashes: Mapping[str, str],
) -> None:
    """Write the store of one part.

    Args:
        path: of the store.
        part: train, valid or test.
        positions: of its structures among those that were read.
        name: of the dataset.
        config: units and types of the store are read from it.
        reading: all structures.
        hashes: the sha256 of each file that they come from.

    Raises:
        UserError: no structure counts.
    """
    sizes = reading.sizes[positions]
    is_packed = is_worth_packing(sizes)
    if is_packed:  # the same sizes after each other, as a store wants them
        order = np.argsort(sizes, kind="stable")
        positions, sizes = positions[order], sizes[order]
    with (
        StoreWriter(
            path,
            n_structures=len(positions),
            max_atoms=int(sizes.max()),
            units=config.store.units.as_units(),
            dtype=config.store.dtype,
            has_virial=reading.labels["virial"] > 0,
            attributes=_attributes(part, name, reading, hashes),
            packed_sizes=sizes if is_packed else None,
        ) as writer,
        ConversionProgress(f"writing {part}") as progress,
    ):
        done, counts = 0, False
        for block in _blocks(positions, sizes if is_packed else np.full_like(sizes, sizes.max())):
            structures = list(reading.spool.read(block))
            counts = counts or any(map(_counts, structures))
            writer.append(structures)
            done += len(block)
            progress.part(done / len(positions))
            progress.frames(len(block))
        if not counts:
            keys = ", ".join(reading.source.weights.found.values())
            raise UserError(
                f"{part}: all weights of its frames are 0 (keys {keys}), so that none would count; raise some"
            )


def _counts(structure: Structure) -> bool:
    """Whether a label that it has is given weight."""
    labels = structure.energy, structure.forces, structure.virial
    weights = structure.energy_weight, structure.forces_weight, structure.virial_weight
    return any(weight for label, weight in zip(labels, weights, strict=True) if label is not None)


def _attributes(part: str, name: str, reading: Reading, hashes: Mapping[str, str]) -> dict[str, str]:
    first = [file["first_frame"] for file in reading.source.files if file["path"] in hashes]
    return {
        "dataset": name,
        "split": part,
        "source": json.dumps(list(hashes)),
        "source_sha256": json.dumps(list(hashes.values())),
        "source_first_frame": json.dumps(first),
        "isolated_atoms": json.dumps({"unit": "eV", "energies": reading.source.isolated.by_symbol()}),
    }


def _blocks(positions: np.ndarray, atoms: np.ndarray) -> list[np.ndarray]:
    """Positions in pieces of about BLOCK_ATOMS, when each has so many ``atoms``."""
    return np.split(positions, np.flatnonzero(np.diff(np.cumsum(atoms) // BLOCK_ATOMS)) + 1)
