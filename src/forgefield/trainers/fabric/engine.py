"""The engine PyTorch: a run's settings as a :class:`~forgefield.trainers.fabric.trainer.FabricTrainer`."""

from pathlib import Path
from typing import Any

from forgefield.config import RunConfig
from forgefield.data.loaders import Source
from forgefield.data.processes import OneProcess
from forgefield.errors import UserError
from forgefield.models.potential import Potential
from forgefield.trainers.fabric.trainer import FabricTrainer


def prepare(config: RunConfig) -> OneProcess:
    """Check that this engine can do a run; the processes that do it.

    Raises:
        UserError: it cannot.
    """
    for key, value in (("devices", config.devices), ("n_nodes", config.n_nodes)):
        if value > 1:
            raise UserError(f"{key}: backend fabric trains on one device only, not {value}; write 1, or backend: jax")
    if config.training.batching != "fixed":
        raise UserError(f"training.batching: {config.training.batching} cannot train yet; write batching: fixed")
    return OneProcess()


def make_trainer(
    config: RunConfig,
    processes: OneProcess,
    potential: Potential,
    train: Source,
    valid: Source | None,
    *,
    checkpoints: Path,
    log_file: Path,
    fingerprint: dict[str, Any],
) -> FabricTrainer:
    """The trainer of a run with its data."""
    trainer = FabricTrainer(
        potential, config.training, checkpoint_path=checkpoints, log_file=log_file, fingerprint=fingerprint
    )
    trainer.set_datasets(train, valid)
    return trainer
