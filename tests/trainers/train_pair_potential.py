"""Train the pair potential in one of several processes: ``train_pair_potential.py OUTPUT --parallelism ...``."""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import jax

from forgefield.trainers.runtime import configure_jax

parser = argparse.ArgumentParser()
parser.add_argument("output", type=Path)
parser.add_argument("--parallelism", default="auto")
parser.add_argument("--devices", type=int, default=1, help="local ones")
parser.add_argument("--coordinator", help="address of process 0 of several JAX processes")
parser.add_argument("--processes", type=int, default=1)
parser.add_argument("--index", type=int, default=0)
parser.add_argument("--precision", default="float64")
parser.add_argument("--data", type=Path, help="directory of train.h5 and valid.h5; in memory without it")
parser.add_argument("--event", help="as ask@7 or kill@7: what happens on the last process after 7 steps")
parser.add_argument("--targets", action="store_true", help="dipoles too, and forces weighted by trust")
options = parser.parse_args()

jax.config.update("jax_num_cpu_devices", options.devices)
if options.coordinator:
    jax.distributed.initialize(options.coordinator, options.processes, options.index)
configure_jax(precision=options.precision)

from conftest import make_labelled  # noqa: E402
from pair_potential import NEIGHBORS, START, arrays, dipole_template, morse_template, with_dipoles  # noqa: E402
from scripted import Scripted  # noqa: E402

from forgefield.errors import StoppedError  # noqa: E402
from forgefield.trainers import ForceMatching  # noqa: E402
from forgefield.trainers.optimizers import optimizer, schedule  # noqa: E402

EPOCHS, OUTPUT = 14, options.output
params, gammas, settings = arrays(START, options.precision), {"U": 1.0, "F": 1.0, "virial": 0.1}, {}
if options.targets:
    params |= arrays({"charge": [0.1, -0.1]}, options.precision)
    gammas |= {"dipole": 0.5}
    settings = {"additional_targets": {"dipole": dipole_template}, "weights_keys": {"F": "trust"}}
trainer = ForceMatching(
    params,
    optimizer("adam", schedule(0.02, EPOCHS * 4, "cosine", warmup_steps=5), clip_norm=10.0),
    morse_template,
    NEIGHBORS,
    batch=12,
    parallelism=options.parallelism,
    gammas=gammas,
    ema=0.9,
    checkpoint_path=OUTPUT,
    checkpoint_steps=3,
    log_file=OUTPUT / "history.csv",
    progress=False,
    check_replicas_every=7,
    **settings,
)
# 43 = 3 x 12 + 7 structures, and 7 in evaluation batches of 12: uneven on two and on four devices
if options.data:
    trainer.set_datasets(options.data / "train.h5", options.data / "valid.h5")
else:
    data = make_labelled(50)
    data = with_dipoles(data) if options.targets else data
    trainer.set_datasets(data[:43], data[43:])
trainer.resume()
is_last = trainer._parallel.index == trainer._parallel.count - 1
try:
    trainer.train(EPOCHS, Scripted(trainer, options.event) if options.event and is_last else None)
except StoppedError as stopped:
    raise SystemExit(stopped.exit_code) from None
assert all(x.sharding.is_fully_replicated for x in jax.tree.leaves(trainer.params))
assert all(len(x.addressable_shards) == options.devices for x in jax.tree.leaves(trainer.params))
found = trainer.evaluate("validation")
if trainer._parallel.is_main:
    (OUTPUT / "metrics.json").write_text(json.dumps(found))
trainer.save_energy_params(OUTPUT / "params.safetensors")
