"""Training of several processes in which the data of one, or its parameters, go wrong: ``fail_on_one.py WHAT ...``."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import jax
import numpy as np
from launching import free_port

parser = argparse.ArgumentParser()
parser.add_argument("what", choices=["read", "replica", "active"])
parser.add_argument("--coordinator")
parser.add_argument("--processes", type=int)
parser.add_argument("--index", type=int)
options = parser.parse_args()
jax.config.update("jax_enable_x64", True)
if options.what == "active":
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    jax.distributed.initialize(world.bcast(f"localhost:{free_port()}"), world.size, world.rank)
elif options.coordinator:
    jax.distributed.initialize(options.coordinator, options.processes, options.index)

import optax  # noqa: E402
from conftest import make_labelled  # noqa: E402
from pair_potential import NEIGHBORS, START, arrays, morse_template  # noqa: E402

from forgefield.trainers import ForceMatching  # noqa: E402


class Disk:
    """Structures that cannot be read any more on process 1 once training has begun."""

    has_virial = False

    def __init__(self, structures):
        self.structures, self.reads = structures, 0

    def __len__(self):
        return len(self.structures)

    def read(self, indices):
        self.reads += 1
        if options.what == "read" and trainer._parallel.index == 1 and self.reads > 2:
            raise OSError("the disk is gone")
        return [self.structures[i] for i in indices]


trainer = ForceMatching(
    arrays(START), optax.adam(0.01), morse_template, NEIGHBORS, batch=4, progress=False, check_replicas_every=3
)
data = Disk(make_labelled(16))
loader = trainer._loader(data, 4, seed=0)
# nothing kept in memory: every batch is read
loader._cache.clear()
loader._cache_left = 0
trainer.set_loader(loader)
if options.what == "replica" and trainer._parallel.index == 1:
    params = trainer._state.params | {"width": trainer._state.params["width"] + np.float64(1e-12)}
    trainer._state = trainer._state._replace(params=params)
trainer.train(10_000)
