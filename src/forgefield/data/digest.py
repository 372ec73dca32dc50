"""What conversion keeps of a block of frames, made where the block was read so that little is left to do after it."""

from dataclasses import dataclass

import numpy as np

from forgefield.data.duplicates import fingerprints
from forgefield.data.magnitudes import magnitudes
from forgefield.data.sources import Block, RejectedFrame
from forgefield.data.spool import pack

LABELS = ("energy", "forces", "virial")


@dataclass(frozen=True)
class Structures:
    """The usable structures of a block.

    Attributes:
        records, lengths: for the spool.
        sizes, indices: atoms and frame number of each.
        has: by label, whether each has it, a byte each.
        elements: atomic numbers that occur.
        hashes: a fingerprint of each.
        energy_ratios, force_rms: for :class:`~forgefield.data.magnitudes.Magnitudes`.
    """

    records: bytes
    lengths: np.ndarray
    sizes: np.ndarray
    indices: np.ndarray
    has: dict[str, bytes]
    elements: np.ndarray
    hashes: bytes
    energy_ratios: np.ndarray
    force_rms: np.ndarray


@dataclass(frozen=True)
class Digest:
    """A block: how many frames, those left out, and the structures, if there are any."""

    frames: int
    rejected: list[RejectedFrame]
    structures: Structures | None


def digest(block: Block) -> Digest:
    """What is kept of a block."""
    rejected = [item for item in block.items if isinstance(item, RejectedFrame)]
    joined = block.joined
    if joined is None:
        return Digest(len(block.items), rejected, None)
    records, lengths = pack(joined)
    energy_ratios, force_rms = magnitudes(joined)
    structures = Structures(
        records=records,
        lengths=lengths,
        sizes=joined.sizes,
        indices=np.array([structure.source_index for structure in joined.structures]),
        has={label: getattr(joined, f"has_{label}").tobytes() for label in LABELS},
        elements=np.unique(joined.numbers),
        hashes=fingerprints(joined),
        energy_ratios=energy_ratios,
        force_rms=force_rms,
    )
    return Digest(len(block.items), rejected, structures)
