"""forgefield's MACE in JAX, compiled and called as a training or a prediction does."""

import time
from functools import partial

import jax
import numpy as np
import optax
from cases import LEARNING_RATE, Case
from jax.flatten_util import ravel_pytree
from systems import SEED

from forgefield.data.loaders import BatchLoader
from forgefield.data.packing import PackedNeighbors
from forgefield.data.reader import StructureList
from forgefield.models.energy import energy_function
from forgefield.trainers.epochs import Watch, train_steps
from forgefield.trainers.losses import Loss
from forgefield.trainers.optimizers import optimizer, schedule
from forgefield.trainers.parallel import SingleDevice
from forgefield.trainers.runtime import configure_jax
from forgefield.trainers.steps import Templates, TrainState, predict_step, train_step

EPOCHS = 10
ADAM_B1 = 0.9


class JaxEngine:
    """A model and a batch, and one step of training or inference with them."""

    def __init__(self, case: Case, precision: str, train: bool) -> None:
        configure_jax(precision=precision)
        self._case, self._train, self._dtype = case, train, np.dtype(precision)
        potential = case.potential
        energy = energy_function(potential)
        params = {k: np.asarray(v, self._dtype) for k, v in potential.parameters.items()}
        vector, self._unpack = ravel_pytree(params)
        templates = Templates(lambda vector: partial(energy, self._unpack(vector)))
        self._neighbors = PackedNeighbors(potential.cutoff, potential.elements, potential.energy_shifts)
        self._loader = self._new_loader()
        self._loader.plan(EPOCHS)
        loaded = next(self._loader.epoch(0))
        assert loaded.rows.tolist() == case.system.rows.tolist()
        self._parallel = SingleDevice()
        self._batch = self._parallel.placed(loaded)
        self._predict = predict_step(templates, self._parallel, virial=False)
        own_optimizer = optimizer("adam", schedule(LEARNING_RATE, 1))
        self._train_step = train_step(
            templates, own_optimizer, Loss(case.gammas), self._parallel, ema=None, virial=False
        )
        state = TrainState(vector, jax.jit(own_optimizer.init)(vector), None, np.int32(0), np.True_)
        self._state = self._parallel.replicated(state)

    def _new_loader(self) -> BatchLoader:
        source = StructureList(self._case.pool)
        return BatchLoader(source, self._neighbors, self._case.system.batch, seed=SEED, dtype=self._dtype)

    def step(self) -> float | None:
        """The loss before an optimizer step; None for inference."""
        if not self._train:
            jax.block_until_ready(self._predict(self._state.params, self._batch))
            return None
        self._state, info = self._train_step(self._state, self._batch)
        jax.block_until_ready(self._state)
        return float(info.loss)

    def first_step(self) -> tuple[float, dict[str, np.ndarray]]:
        """Make the first step, which compiles it.

        Adam's first moment is then the gradient times 1 - b1, so the step itself is what is checked.

        Returns:
            Its seconds; energies (B,) eV, forces (N, 3) eV/Å and, for training, the loss and its gradient by parameter.
        """
        params = self._parallel.replicated(self._state.params)
        start = time.perf_counter()
        loss = self.step()
        seconds = time.perf_counter() - start
        predicted = self._predict(params, self._batch)
        found = {"energy": predicted.energy[0], "forces": predicted.forces[0, : sum(map(len, self._case.batch))]}
        if self._train:
            first = self._unpack(optax.tree.get(self._state.opt_state, "mu"))
            found |= {f"gradient/{k}": v / (1 - ADAM_B1) for k, v in first.items()}
            found["loss"] = loss
        return seconds, {name: np.asarray(array) for name, array in found.items()}

    def batch_seconds(self) -> dict[str, float]:
        """How long it takes to build a batch from structures whose neighbour lists are kept, or are not."""
        start = time.perf_counter()
        pairs = [self._neighbors.pairs(s) for s in self._case.batch]
        middle = time.perf_counter()
        self._neighbors.pack(self._case.batch, pairs, self._loader.capacities[-1], self._dtype)
        end = time.perf_counter()
        return {"kept": end - middle, "new": end - start}

    def train(self, steps: int) -> int:
        """Whole epochs of at least ``steps`` steps, as a training runs them: batches made in the background.

        Returns:
            The steps that were done.
        """
        before = int(self._state.step)
        while int(self._state.step) - before < steps:
            epoch = (int(self._state.step) // len(self._loader)) % EPOCHS
            done = train_steps(self._train_step, self._state, self._loader, epoch, self._parallel, Watch())
            for state, _ in done:
                self._state = state
        return int(self._state.step) - before
