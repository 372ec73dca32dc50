"""Train on data that cannot be shared evenly, in every way: ``share_epochs.py POTENTIAL OUTPUT DEVICES``.

Each process writes, as ``rank_N.npz``, its parameters after two epochs of each case under ``case/name``, and the number
of steps under ``case/step``.
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from labelled_data import labelled_structures, run_config, with_giant

from forgefield import launch
from forgefield.data.reader import StructureList
from forgefield.errors import reported_errors
from forgefield.models.potential import load_potential
from forgefield.trainers.stopping import Stop

DATA = {
    "odd": labelled_structures(11),
    "few": labelled_structures(3)[:2],
    "giant": with_giant(labelled_structures(8)),
}
CASES = {
    "-".join([name, batching, balance, "dropped" if drop_last else "kept"]): (name, batching, balance, drop_last)
    for name, batching, balance, drop_last in product(DATA, ("fixed", "dynamic"), ("exact", "repeat"), (False, True))
    if not (name == "few" and drop_last)
}


def train():
    from forgefield.trainers.fabric import engine
    from forgefield.trainers.fabric.trainer import FabricTrainer

    processes = engine.prepare(config_of())
    potential = load_potential(Path(sys.argv[1]))
    arrays = {}
    for case, (name, batching, balance, drop_last) in CASES.items():
        config = config_of(batching=batching, balance=balance, drop_last=drop_last)
        trainer = FabricTrainer(potential, config.training, processes, progress=False)
        trainer.set_datasets(StructureList(DATA[name]), StructureList(DATA[name][:2]))
        trainer.train(2)
        arrays |= {f"{case}/{name}": value for name, value in trainer.params.items()}
        arrays[f"{case}/step"] = np.array(trainer.step)
        arrays[f"{case}/valid_loss"] = np.array([row["valid_loss"] for row in trainer.history])
    np.savez(Path(sys.argv[2]) / f"rank_{processes.index}.npz", **arrays)


def config_of(**training):
    return run_config(batch=6, epochs=2, **training).model_copy(update={"devices": int(sys.argv[3])})


if __name__ == "__main__":
    with reported_errors():
        if launch.is_started(config_of()):
            with launch.ended_together():
                launch.join(config_of())
                train()
        elif config_of().devices > 1:
            launch.start(config_of(), Path(sys.argv[2]), Stop())
        else:
            train()
