"""Training by force matching. Names load on first use, so that each engine is imported only when chosen."""

from importlib import import_module
from typing import Any

_HOMES = {"ForceMatching": "forgefield.trainers.force_matching", "PackedNeighbors": "forgefield.data.loaders"}

__all__ = ["ForceMatching", "PackedNeighbors"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
