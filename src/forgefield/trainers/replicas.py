"""Whether all devices still hold the same parameters and optimizer state."""

import zlib
from typing import Any

import jax
import numpy as np

from forgefield.errors import MachineError
from forgefield.trainers.parallel import Parallelism
from forgefield.trainers.trees import named_arrays


def check_replicas(state: Any, parallel: Parallelism) -> None:
    """Compare checksums of every array on every device with those of the first.

    Raises:
        MachineError: one differs; the message names device and array. It is raised on every process.
    """
    by_process = parallel.exchange(_checksums(state))
    replicas = [replica for of_process in by_process for replica in of_process]
    for number, replica in enumerate(replicas):
        for name, checksum in replica.items():
            if checksum != replicas[0][name]:
                raise MachineError(
                    f"{_owner(parallel)} {number} holds another {name} than {_owner(parallel)} 0, though both made the "
                    "same steps; continue from the last checkpoint, and check this machine's memory and libraries"
                )


def _owner(parallel: Parallelism) -> str:
    return "rank" if parallel.method == "mpi" else "device"


def _checksums(state: Any) -> list[dict[str, int]]:
    """By array, for each device of this process."""
    count = len(jax.tree.leaves(state)[0].addressable_shards)
    replicas = [jax.tree.map(lambda x: np.asarray(x.addressable_shards[i].data), state) for i in range(count)]  # noqa: B023
    return [{name: zlib.crc32(array.tobytes()) for name, array in named_arrays(r).items()} for r in replicas]
