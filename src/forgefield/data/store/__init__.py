"""The HDF5 store: structures padded to the largest, with labels, weights and units in one file."""

from forgefield.data.store.layout import FORMAT_VERSION
from forgefield.data.store.opening import is_store
from forgefield.data.store.reader import Store
from forgefield.data.store.writer import StoreWriter

__all__ = ["FORMAT_VERSION", "Store", "StoreWriter", "is_store"]
