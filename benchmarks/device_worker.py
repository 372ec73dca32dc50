"""One process of a run of benchmarks/devices.py: trains on its devices and reports the times of each epoch."""

import argparse
import json
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("store", type=Path)
parser.add_argument("model", type=Path)
parser.add_argument("--parallelism", required=True)
parser.add_argument("--devices", type=int, default=1)
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--epochs", type=int, required=True)
parser.add_argument("--precision", default="float32")
parser.add_argument("--output", type=Path, required=True)
options = parser.parse_args()

from forgefield.trainers.runtime import configure_jax  # noqa: E402

configure_jax(precision=options.precision, devices=options.devices)

import numpy as np  # noqa: E402

from forgefield.data.hdf5_loader import StoreFile  # noqa: E402
from forgefield.models.potential import load_potential  # noqa: E402
from forgefield.trainers.jax_engine import PotentialMatching  # noqa: E402
from forgefield.trainers.optimizers import optimizer  # noqa: E402
from forgefield.trainers.parallel import choose_parallelism  # noqa: E402

parallel = choose_parallelism(options.parallelism)
trainer = PotentialMatching(
    load_potential(options.model),
    np.dtype(options.precision),
    "reference",
    optimizer=optimizer("adam", 1e-4),
    batch=options.batch,
    parallelism=parallel,
    progress=False,
)
trainer.set_datasets(options.store)
trainer.train(options.epochs)
times = ("seconds", "data_wait_ms_per_step")
# the slowest process counts
slowest = {name: np.max(parallel.exchange([row[name] for row in trainer.history]), axis=0).tolist() for name in times}
if parallel.is_main:
    found = {"devices": parallel.parts, "structures": len(StoreFile(options.store)), **slowest}
    options.output.write_text(json.dumps(found))
