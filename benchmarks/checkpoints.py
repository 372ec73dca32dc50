"""Times a training that writes checkpoints beside one that writes none, in turns.

The foundation model of the default run is trained on molecules of ethanol with random labels, in JAX on one device.
Medians over the rounds. Run ``python benchmarks/checkpoints.py`` from the repository's root.
"""

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import ase.build
import numpy as np

from forgefield.data.structures import Structure
from forgefield.models.potential import load_potential
from forgefield.trainers.jax_engine import PotentialMatching
from forgefield.trainers.optimizers import optimizer
from forgefield.trainers.runtime import configure_jax

MODEL = Path("resources/foundation/hcno-gfn2")
BATCH, STEPS, EPOCHS, ROUNDS = 8, 50, 4, 5
EVERY = (None, 50, 10, 1)


class Timed(PotentialMatching):
    """Adds up the seconds that the training spends on checkpoints itself."""

    saving = 0.0

    def _save(self, complete: bool = False) -> None:
        start = time.perf_counter()
        super()._save(complete)
        self.saving += time.perf_counter() - start


class Found(NamedTuple):
    """Milliseconds per step, those of them that saving takes the training, and of the longest writing in the thread."""

    step: float
    saving: float
    writing: float


def molecules() -> list[Structure]:
    rng, atoms = np.random.default_rng(0), ase.build.molecule("CH3CH2OH")
    shape = (len(atoms), 3)
    return [
        Structure(atoms.numbers, atoms.positions + 0.05 * rng.normal(size=shape), energy=0.0, forces=np.zeros(shape))
        for _ in range(BATCH * STEPS)
    ]


def train(every: int | None, data: list[Structure], folder: Path) -> Found:
    """Train with a checkpoint after each ``every`` steps."""
    made = Timed(
        load_potential(MODEL),
        np.dtype("float32"),
        "reference",
        optimizer=optimizer("adam", 1e-6),
        batch=BATCH,
        parallelism="single",
        ema=0.99,
        checkpoint_path=folder,
        checkpoint_every=10**9,
        checkpoint_steps=every,
        progress=False,
    )
    made.set_datasets(data)
    made.train(1)  # compiles
    made.saving, start = 0.0, time.perf_counter()
    made.train(1 + EPOCHS)
    steps = STEPS * EPOCHS
    return Found(1e3 * (time.perf_counter() - start) / steps, 1e3 * made.saving / steps, 1e3 * made._seconds_of_writing)


def main() -> None:
    configure_jax(precision="float32")
    data, found = molecules(), {every: [] for every in EVERY}
    for _ in range(ROUNDS):
        for every, rounds in found.items():
            with tempfile.TemporaryDirectory() as folder:
                rounds.append(train(every, data, Path(folder)))
    for every, rounds in found.items():
        step, saving, writing = (median(values) for values in zip(*rounds, strict=True))
        name = "one checkpoint, at the end" if every is None else f"a checkpoint each {every} steps"
        print(
            f"{name}: {step:.1f} ms per step, of which saving {saving:.3f} ms; writing in the thread {writing:.0f} ms"
        )


if __name__ == "__main__":
    main()
