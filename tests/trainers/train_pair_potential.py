"""Train the pair potential in a process of its own: ``train_pair_potential.py OUTPUT DEVICES``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from forgefield.trainers.runtime import configure_jax

output, devices = Path(sys.argv[1]), int(sys.argv[2])
configure_jax(precision="float64", devices=devices)

import jax  # noqa: E402
from conftest import make_labelled  # noqa: E402
from pair_potential import NEIGHBORS, START, arrays, morse_template  # noqa: E402

from forgefield.trainers import ForceMatching  # noqa: E402
from forgefield.trainers.optimizers import optimizer, schedule  # noqa: E402

EPOCHS = 14
data = make_labelled(43)
trainer = ForceMatching(
    arrays(START),
    optimizer("adam", schedule(0.02, EPOCHS * 4, "cosine", warmup_steps=5), clip_norm=10.0),
    morse_template,
    NEIGHBORS,
    batch=10,
    gammas={"U": 1.0, "F": 1.0, "virial": 0.1},
    ema=0.9,
    checkpoint_path=output,
    log_file=output / "history.csv",
    progress=False,
)
# 33 = 3 x 10 + 3 structures, and 7 in evaluation batches of 10: uneven on two devices
trainer.set_datasets(data[:33], data[33:40], data[40:])
trainer.resume()
trainer.train(EPOCHS)
assert all(x.sharding.is_fully_replicated for x in jax.tree.leaves(trainer._state))
assert all(len(x.sharding.device_set) == devices for x in jax.tree.leaves(trainer._state))
trainer.save_energy_params(output / "params.safetensors")
