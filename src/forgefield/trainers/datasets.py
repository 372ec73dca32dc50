"""From whatever is given as a data set to the loader of its batches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py

from forgefield.data.given import given_structures, refuse
from forgefield.data.hdf5_loader import HDF5ParallelDataLoader
from forgefield.data.loaders import BatchLoader
from forgefield.data.packing import PackedNeighbors
from forgefield.data.reader import Source, StructureList
from forgefield.data.store import Store
from forgefield.data.structures import Structure
from forgefield.data.targets import NO_TARGETS, Targets
from forgefield.errors import UserError
from forgefield.trainers.parallel import Parallelism

Dataset = Source | Sequence[Structure] | Path | str | h5py.File


def make_loader(
    dataset: Dataset,
    neighbors: PackedNeighbors,
    batch: int,
    parallel: Parallelism,
    *,
    targets: Targets = NO_TARGETS,
    **settings: Any,
) -> BatchLoader:
    """The loader of this process's parts of batches; see :class:`~forgefield.data.loaders.BatchLoader` for arguments.

    Raises:
        UserError: it is no data set, or several processes are to share an open file.
    """
    settings |= {"parts": parallel.parts, "local_parts": parallel.local_parts, "processes": parallel}
    if isinstance(dataset, Path | str):
        return HDF5ParallelDataLoader(dataset, neighbors, batch, targets=targets, **settings)
    if isinstance(dataset, h5py.File):
        if parallel.count > 1:
            raise UserError(
                f"dataset: {parallel.count} processes cannot share an open HDF5 file; give its path, which each opens"
            )
        dataset = Store(dataset, targets)
    elif isinstance(dataset, Store) and targets.required:
        dataset = dataset.with_targets(targets)
    elif isinstance(dataset, Sequence):
        dataset = StructureList(given_structures(dataset, targets))
    if not hasattr(dataset, "read"):
        raise refuse(dataset)
    return BatchLoader(dataset, neighbors, batch, targets=targets, **settings)
