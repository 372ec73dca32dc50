"""The engine JAX: a run's settings as a :class:`PotentialMatching`."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from forgefield.config import RunConfig
from forgefield.data.packing import PackedNeighbors
from forgefield.data.reader import Source
from forgefield.errors import UserError
from forgefield.models.energy import energy_function
from forgefield.models.kernels import choose_kernels
from forgefield.models.mace.settings import Kernels
from forgefield.models.potential import Potential
from forgefield.trainers.force_matching import ForceMatching
from forgefield.trainers.optimizers import optimizer, schedule
from forgefield.trainers.parallel import Parallelism, choose_parallelism, data_mesh
from forgefield.trainers.runtime import configure_jax


class PotentialMatching(ForceMatching):
    """Trains a potential's parameters as one vector.

    Adam treats every number alike; one long array takes a few operations, dozens of short ones take hundreds, which is
    a twentieth of a small model's step.
    """

    def __init__(self, potential: Potential, dtype: np.dtype, kernels: Kernels, **settings: Any) -> None:
        energy = energy_function(potential, kernels)
        parameters = {name: np.asarray(value, dtype) for name, value in potential.parameters.items()}
        vector, self._by_name = ravel_pytree(parameters)
        super().__init__(
            vector,
            energy_fn_template=lambda vector: partial(energy, self._by_name(vector)),
            nbrs_init=PackedNeighbors(potential.cutoff, potential.elements, potential.energy_shifts),
            **settings,
        )

    @property
    def params(self) -> dict[str, jax.Array]:
        """The parameters as the last step left them, by the potential's names."""
        return self._by_name(super().params)

    @property
    def best_params(self) -> dict[str, np.ndarray]:
        """See :class:`~forgefield.trainers.force_matching.ForceMatching`; by the potential's names."""
        return {name: np.asarray(value) for name, value in self._by_name(super().best_params).items()}


def prepare(config: RunConfig) -> Parallelism:
    """Configure JAX for a run; the devices that share its batches.

    Raises:
        UserError: these devices are not here.
    """
    alone = config.n_devices == 1 and config.parallelism in ("auto", "single")
    configure_jax(precision=config.training.precision, devices=1 if config.parallelism == "mpi" else config.devices)
    if alone:
        return choose_parallelism("single")
    if config.parallelism == "mpi":
        return _checked(choose_parallelism("mpi"), config)
    by_process = [jax.local_devices(process_index=i)[: config.devices] for i in range(jax.process_count())]
    return _checked(choose_parallelism("jax", data_mesh([d for devices in by_process for d in devices])), config)


def _checked(parallel: Parallelism, config: RunConfig) -> Parallelism:
    if parallel.method == "mpi" and parallel.count == 1 < int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")):
        raise UserError(
            "slurm.launcher: srun has started single processes instead of ranks, for it does not know this MPI's PMIx; "
            "write slurm.launcher: mpirun"
        )
    if parallel.parts != config.n_devices:
        raise UserError(
            f"parallelism: {parallel.method} found {parallel.parts} devices in {parallel.count} processes, but devices "
            f"x n_nodes is {config.n_devices}; start this by `forgefield train`, which starts the processes"
        )
    return parallel


def make_trainer(
    config: RunConfig,
    parallel: Parallelism,
    potential: Potential,
    train: Source,
    valid: Source | None,
    *,
    checkpoints: Path,
    log_file: Path,
    fingerprint: dict[str, Any],
) -> PotentialMatching:
    """The trainer of a run with its data."""
    training = config.training
    steps = len(train) // training.batch if training.drop_last else -(-len(train) // training.batch)
    lr = schedule(training.lr, steps * training.epochs, **training.schedule.model_dump())
    kernels = choose_kernels(training.kernels)
    if parallel.is_main:
        print(f"kernels: {kernels}, on {jax.default_backend()}", file=sys.stderr, flush=True)
    trainer = PotentialMatching(
        potential,
        np.dtype(training.precision),
        kernels,
        optimizer=optimizer(training.optimizer, lr, weight_decay=training.weight_decay, clip_norm=training.clip_norm),
        batch=training.batch,
        eval_batch=training.eval_batch,
        parallelism=parallel,
        gammas={"U": training.loss.energy, "F": training.loss.forces, "virial": training.loss.virial},
        loss=training.loss.kind,
        huber_delta=training.loss.huber_delta,
        ema=training.ema,
        early_stopping=training.early_stopping,
        drop_last=training.drop_last,
        seed=training.seed,
        checkpoint_path=checkpoints,
        checkpoint_every=training.checkpoint_every,
        checkpoint_steps=training.checkpoint_steps,
        checkpoint_minutes=training.checkpoint_minutes,
        keep_checkpoints=training.keep_checkpoints,
        log_file=log_file,
        fingerprint=fingerprint,
    )
    trainer.set_datasets(train, valid)
    return trainer
