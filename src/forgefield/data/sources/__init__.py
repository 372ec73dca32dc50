"""Reference files of any format as one stream of structures in eV and Å."""

from forgefield.data.sources.files import find_files
from forgefield.data.sources.frames import RawFrame, RejectedFrame
from forgefield.data.sources.pieces import Block
from forgefield.data.sources.source import Source

__all__ = ["Block", "RawFrame", "RejectedFrame", "Source", "find_files"]
