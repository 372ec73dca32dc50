"""Gradients of a force loss on two devices by cuEquivariance, printed as JSON; runs in a process of its own.

``checked``: for each kernels, what JAX says where it derives how values vary over the devices. ``difference``: of the
gradient of the training step from the mean of the devices' gradients, relative to its largest component.
"""

import json

import jax
import numpy as np
import optax
from jax.sharding import PartitionSpec

from forgefield.data.batching import Batch, needed_capacity, pack_graph, pack_labels
from forgefield.data.neighbors import neighbor_pairs
from forgefield.data.structures import Structure
from forgefield.models.energy import energy_function
from forgefield.models.mace.initial import initial_potential
from forgefield.models.mace.settings import MaceSettings
from forgefield.trainers.losses import Loss
from forgefield.trainers.parallel import AXIS, JaxMesh, data_mesh
from forgefield.trainers.steps import Templates, TrainState, predict, train_step

SETTINGS = MaceSettings(
    r_max=3.0,
    hidden_channels=2,
    l_max=1,
    correlation=(2,),
    interactions=("RealAgnosticInteractionBlock",),
    n_bessel=4,
    polynomial_cutoff=5,
    radial_mlp=(4,),
    mlp_channels=2,
)
LOSS = Loss()


def batches(potential):
    """Two molecules, each alone in a batch, with the leading axis that devices share."""
    generator = np.random.default_rng(0)
    made = []
    for _ in range(2):
        positions = np.eye(3) + generator.normal(0, 0.1, (3, 3))
        structure = Structure(np.array([8, 1, 1]), positions, energy=1.0, forces=generator.normal(size=(3, 3)))
        pairs = [neighbor_pairs(structure, potential.cutoff)]
        capacity = needed_capacity([structure], pairs)
        graph = pack_graph([structure], pairs, potential.elements, potential.cutoff, capacity)
        made.append(Batch(graph, pack_labels([structure], potential.energy_shifts, capacity)))
    return made


def template_of(potential, kernels):
    energy = energy_function(potential, kernels=kernels)
    return lambda params: lambda graph, strain=None: energy(params, graph, strain)


def gradient(template, params, batch):
    def loss(params):
        return LOSS.per_structure(predict(Templates(template), params, batch.graph, False), batch).mean()

    return jax.grad(loss)(params)


def checked_gradient(template, params, stacked, mesh):
    """The gradient of the mean loss with JAX's own account of what varies over devices."""

    def local(params, batch):
        return gradient(template, params, jax.tree.map(lambda x: x[0], batch))

    specs = {"in_specs": (PartitionSpec(), PartitionSpec(AXIS)), "out_specs": PartitionSpec()}
    return jax.jit(jax.shard_map(local, mesh=mesh, check_vma=True, **specs))(params, stacked)


def step_difference(template, params, parts, stacked, mesh):
    """A step of gradient descent at learning rate 1 shows the gradient."""
    optimizer = optax.sgd(1.0)
    step = train_step(Templates(template), optimizer, LOSS, JaxMesh(mesh), ema=None, virial=False)
    state = TrainState(jax.tree.map(jax.numpy.array, params), optimizer.init(params), None, np.int32(0), np.True_)
    after = step(state, stacked)[0].params
    compiled = jax.jit(lambda params, part: gradient(template, params, part))
    by_part = [compiled(params, part) for part in parts]
    expected = {k: (by_part[0][k] + by_part[1][k]) / 2 for k in params}
    largest = max(abs(g).max() for g in expected.values() if g.size)
    return max(float(abs(params[k] - after[k] - g).max() / largest) for k, g in expected.items() if g.size)


def main():
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", 2)
    potential = initial_potential((1, 8), SETTINGS, seed=0)
    params = dict(potential.parameters)
    parts = batches(potential)
    stacked = jax.tree.map(lambda *x: np.stack(x), *parts)
    mesh = data_mesh()
    checked = {}
    for kernels in ("reference", "cuequivariance"):
        try:
            checked_gradient(template_of(potential, kernels), params, stacked, mesh)
            checked[kernels] = "accepted"
        except Exception as error:
            checked[kernels] = str(error)
    template = template_of(potential, "cuequivariance")
    print(json.dumps({"checked": checked, "difference": step_difference(template, params, parts, stacked, mesh)}))


if __name__ == "__main__":
    main()
