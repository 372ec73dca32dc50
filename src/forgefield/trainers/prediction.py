"""From packed predictions on devices to structures with predicted labels."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from forgefield.data.batching import Batch, shift_energy
from forgefield.data.loaders import BatchLoader, LoadedBatch
from forgefield.data.structures import Structure
from forgefield.trainers.losses import Predicted
from forgefield.trainers.parallel import Parallelism


def predict(
    step: Callable[[Any, Batch], Predicted], params: Any, loader: BatchLoader, parallel: Parallelism
) -> list[Structure]:
    """The loader's structures, in the order of their source, with predicted labels; energy shifts are included."""
    found: dict[int, Structure] = {}
    with closing(parallel.batches(loader, 0)) as batches:
        for loaded in batches:
            local = _local_parts(step(params, parallel.placed(loaded)))
            parts = [part for of_process in parallel.exchange(local) for part in of_process]
            found.update(_unpacked(loader, loaded, parts))
    return [found[row] for row in sorted(found)]


def _local_parts(predicted: Predicted) -> list[Predicted]:
    """The predictions of each device of this process, on the host."""
    arrays, structure = jax.tree.flatten(predicted)
    shards = (sorted(array.addressable_shards, key=_start) for array in arrays)
    parts = zip(*([np.asarray(shard.data[0]) for shard in of_array] for of_array in shards), strict=True)
    return [structure.unflatten(part) for part in parts]


def _start(shard: Any) -> int:
    return shard.index[0].start or 0


def _unpacked(loader: BatchLoader, loaded: LoadedBatch, predicted: list[Predicted]) -> Iterator[tuple[int, Structure]]:
    """Row number and structure, with its predicted labels, of everything in a batch."""
    rows = iter(zip(loaded.rows.tolist(), loader.structures(loaded.rows), strict=True))
    shifts = loader.neighbors.shifts
    for part, length in zip(predicted, loaded.part_lengths, strict=True):
        start = 0
        for i in range(length):
            row, structure = next(rows)
            end = start + len(structure)
            virial = None if part.virial is None else part.virial[i].astype(np.float64)
            targets = {name: values[i].astype(np.float64) for name, values in part.targets.items()}
            yield (
                row,
                replace(
                    structure,
                    energy=float(part.energy[i]) + shift_energy(structure, shifts),
                    forces=part.forces[start:end].astype(np.float64),
                    virial=virial,
                    extra={**structure.extra, **targets},
                ),
            )
            start = end
