"""The engine JAX: a run's settings as a :class:`~forgefield.trainers.force_matching.ForceMatching`."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from forgefield.config import RunConfig
from forgefield.data.loaders import PackedNeighbors, Source
from forgefield.errors import UserError
from forgefield.models.energy import energy_function
from forgefield.models.kernels import choose_kernels
from forgefield.models.potential import Potential
from forgefield.trainers.force_matching import ForceMatching
from forgefield.trainers.optimizers import optimizer, schedule
from forgefield.trainers.parallel import METHODS, data_mesh
from forgefield.trainers.runtime import configure_jax


def prepare(config: RunConfig) -> None:
    """Configure JAX for a run.

    Raises:
        UserError: this engine cannot do it, or its devices are not here.
    """
    if config.parallelism not in METHODS:
        raise UserError(f"parallelism: {config.parallelism} cannot train here; choose one of {', '.join(METHODS)}")
    if config.n_nodes > 1:
        raise UserError(f"n_nodes: {config.n_nodes} cannot be used by parallelism {config.parallelism}; write 1")
    configure_jax(precision=config.training.precision, devices=config.devices)


def make_trainer(
    config: RunConfig,
    potential: Potential,
    train: Source,
    valid: Source | None,
    *,
    checkpoints: Path,
    log_file: Path,
    fingerprint: dict[str, Any],
) -> ForceMatching:
    """The trainer of a run with its data."""
    training = config.training
    steps = len(train) // training.batch if training.drop_last else -(-len(train) // training.batch)
    lr = schedule(training.lr, steps * training.epochs, **training.schedule.model_dump())
    kernels = choose_kernels(training.kernels)
    print(f"kernels: {kernels}, on {jax.default_backend()}", file=sys.stderr, flush=True)
    energy = energy_function(potential, kernels)
    dtype = np.dtype(training.precision)
    alone = config.devices == 1 and config.parallelism != "jax"
    trainer = ForceMatching(
        {k: np.asarray(v, dtype) for k, v in potential.parameters.items()},
        optimizer(training.optimizer, lr, weight_decay=training.weight_decay, clip_norm=training.clip_norm),
        lambda params: partial(energy, params),
        PackedNeighbors(potential.cutoff, potential.elements, potential.energy_shifts),
        batch=training.batch,
        eval_batch=training.eval_batch,
        parallelism="single" if alone else "jax",
        mesh=None if alone else data_mesh(jax.local_devices()[: config.devices]),
        gammas={"U": training.loss.energy, "F": training.loss.forces, "virial": training.loss.virial},
        loss=training.loss.kind,
        huber_delta=training.loss.huber_delta,
        ema=training.ema,
        early_stopping=training.early_stopping,
        drop_last=training.drop_last,
        seed=training.seed,
        checkpoint_path=checkpoints,
        checkpoint_every=training.checkpoint_every,
        log_file=log_file,
        fingerprint=fingerprint,
    )
    trainer.set_datasets(train, valid)
    return trainer
