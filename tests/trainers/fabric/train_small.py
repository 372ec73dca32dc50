"""Train the small model: ``train_small.py INPUTS OUTPUT DEVICES EPOCHS [SETTINGS [EVENT]]``, in so many processes.

Settings of training, as JSON, change the usual ones. EVENT happens on the last process, see ``scripted.py``.
Each process writes its parameters, and buffers that may change, as ``rank_N.npz``.
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

sys.path.insert(0, str(Path(__file__).parent.parent))

from labelled_data import SETTINGS, run_config
from scripted import Scripted

from forgefield import launch
from forgefield.data.store import Store
from forgefield.errors import reported_errors
from forgefield.models.potential import load_potential
from forgefield.trainers.stopping import Stop

INPUTS, OUTPUT, DEVICES, EPOCHS = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
CONFIG = run_config(**(SETTINGS | json.loads(sys.argv[5] if sys.argv[5:] else "{}"))).model_copy(
    update={"devices": DEVICES}
)


def train():
    from forgefield.trainers.fabric import engine

    processes = engine.prepare(CONFIG)
    potential = load_potential(INPUTS / "model")
    if processes.index:
        # process 0's start counts
        next(iter(potential.parameters.values()))[:] = 0.0
    files = {"checkpoints": OUTPUT / "checkpoints", "log_file": OUTPUT / "history.csv", "fingerprint": {}}
    with Store(INPUTS / "train.h5") as data, Store(INPUTS / "valid.h5") as valid:
        trainer = engine.make_trainer(CONFIG, processes, potential, data, valid, **files)
        trainer.resume()
        scripted = sys.argv[6:] and processes.index == DEVICES - 1
        trainer.train(EPOCHS, Scripted(trainer, sys.argv[6]) if scripted else None)
    np.savez(OUTPUT / f"rank_{processes.index}.npz", **trainer.params, **trainer.best_buffers)


with reported_errors():
    if launch.is_started(CONFIG):
        with launch.ended_together():
            launch.join(CONFIG)
            train()
    elif DEVICES > 1:
        launch.start(CONFIG, OUTPUT, Stop())
    else:
        train()
