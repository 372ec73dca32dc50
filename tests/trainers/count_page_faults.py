"""Page faults of a training step that needs 100 MB of temporary memory, on so many devices: the median over epochs."""

import resource
import sys
from statistics import median

from forgefield.trainers.runtime import configure_jax

devices = int(sys.argv[1])
configure_jax(devices=devices)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from forgefield.data.structures import Structure  # noqa: E402
from forgefield.trainers import ForceMatching, PackedNeighbors  # noqa: E402
from forgefield.trainers.optimizers import optimizer  # noqa: E402

WIDTH, BATCH, BATCHES, CUTOFF = 12800, 32, 4, 3.0


def template(params):
    """A network of one wide layer for the distances of pairs."""

    def energies(graph, strain=None):
        vectors = graph.positions[graph.pair_receiver] - graph.positions[graph.pair_sender] + graph.pair_shift
        hidden = jnp.tanh(jnp.sum(vectors**2, axis=1)[:, None] * params["first"])
        return jnp.zeros(len(graph.n_atoms)).at[graph.pair_structure].add((hidden @ params["second"]).sum(axis=1))

    return energies


random = np.random.default_rng(0)
structures = [
    Structure(np.ones(12, int), random.uniform(0, 4, (12, 3)), energy=0.0, forces=np.zeros((12, 3)))
    for _ in range(BATCH * BATCHES)
]
params = {"first": np.ones(WIDTH, np.float32), "second": np.ones((WIDTH, 2), np.float32)}
trainer = ForceMatching(
    params, optimizer("adam", 1e-6), template, PackedNeighbors(CUTOFF, (1,)), batch=BATCH, progress=False
)
trainer.set_datasets(structures)
faults = []
for epoch in range(2, 10):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    trainer.train(epoch)
    faults.append((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // BATCHES)
# the first two compile and fill the heap, which may grow again where two threads take turns otherwise than before
print(round(median(faults[1:])))
