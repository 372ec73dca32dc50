"""Recover the parameters of a Lennard-Jones potential of jax_md, and of contacts, from their own energies and forces.

``recover_lennard_jones.py OUTPUT DEVICES`` writes them as JSON; runs in one process or in each of several ranks.
"""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

output, devices = Path(sys.argv[1]), int(sys.argv[2])
jax.config.update("jax_num_cpu_devices", devices)
jax.config.update("jax_enable_x64", True)

from jax_md import energy, partition, space  # noqa: E402

from forgefield.data.structures import Structure  # noqa: E402
from forgefield.trainers import ForceMatching  # noqa: E402

TRUE = {"sigma": 2.2, "epsilon": 0.04, "decay": 1.5}
START = {"sigma": np.array(2.05), "epsilon": np.array(0.03), "decay": np.array(1.2)}
SIZES = (5, 8, 8, 7, 8, 6)

# Å
ONSET, CUTOFF = 4.4, 5.5
displacement, _ = space.free()
neighbor_fn = partition.neighbor_list(displacement, 50.0, CUTOFF, 0.0, format=partition.OrderedSparse)
pair_energy = energy.multiplicative_isotropic_cutoff(energy.lennard_jones, ONSET, CUTOFF)


def template(params):
    def energy_fn(R, neighbor, **sample):
        return pair_energy(distances(R, neighbor), params["sigma"], params["epsilon"]).sum()

    return energy_fn


def distances(R, neighbor):
    one, other = neighbor.idx
    between = space.map_bond(displacement)(R[one], R[other])
    # empty entries of the list point at one atom twice, where the derivative by sigma is not finite
    return jnp.where(one < len(R), space.distance(between), CUTOFF)


def contacts_template(params):
    """``template(params)(R, neighbor, **sample)`` gives (2,), how close the atoms of a cluster are."""

    def contacts(R, neighbor, **sample):
        distance = distances(R, neighbor) / params["decay"]
        return jnp.stack([jnp.exp(-distance).sum(), jnp.exp(-(distance**2)).sum()])

    return contacts


def clusters(n, seed=0):
    """Argon at random places, none too close."""
    generator = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(2)] * 3), axis=-1).reshape(-1, 3)
    sizes = [SIZES[i % len(SIZES)] for i in range(n)]
    places = [2.5 * grid[:size] + generator.uniform(-0.2, 0.2, (size, 3)) for size in sizes]
    return [Structure(np.full(len(R), 18), R, source_index=i) for i, R in enumerate(places)]


def trainer(params, parallelism="auto", steps=1):
    nbrs_init = neighbor_fn.allocate(jnp.array(clusters(2)[1].positions))
    lr = optax.cosine_decay_schedule(0.02, steps)
    return ForceMatching(
        params,
        optax.adam(lr),
        template,
        nbrs_init,
        batch=4,
        parallelism=parallelism,
        gammas={"U": 1.0, "F": 1.0, "contacts": 1.0},
        additional_targets={"contacts": contacts_template},
        progress=False,
    )


if __name__ == "__main__":
    labelled = trainer({k: np.array(v) for k, v in TRUE.items()}, "single").predict(clusters(22))
    epochs = 60
    made = trainer(START, steps=6 * epochs)
    made.set_datasets(labelled)
    made.train(epochs)
    found = {name: float(value) for name, value in made.params.items()}
    # every rank could write; they hold the same
    output.write_text(json.dumps({"method": made._parallel.method, "devices": made._parallel.parts} | found))
