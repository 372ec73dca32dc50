"""Training by force matching. Names load on first use, so that each engine is imported only when chosen."""

from importlib import import_module
from typing import Any

_HOMES = {
    "ForceMatching": "forgefield.trainers.force_matching",
    "HDF5ParallelDataLoader": "forgefield.data.hdf5_loader",
    "PackedNeighbors": "forgefield.data.packing",
}

__all__ = ["ForceMatching", "HDF5ParallelDataLoader", "PackedNeighbors"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
