"""The HDF5 store: structures with labels, weights and units in one file, which HDF5 shows padded to the largest."""

from forgefield.data.store.layout import FORMAT_VERSION
from forgefield.data.store.opening import is_store
from forgefield.data.store.reader import Store
from forgefield.data.store.writer import StoreWriter

__all__ = ["FORMAT_VERSION", "Store", "StoreWriter", "is_store"]
