"""The engine PyTorch: a run's settings as a :class:`~forgefield.trainers.fabric.trainer.FabricTrainer`."""

from pathlib import Path
from typing import Any

from forgefield.config import RunConfig
from forgefield.data.reader import Source
from forgefield.models.potential import Potential
from forgefield.trainers.fabric.connect import connect
from forgefield.trainers.fabric.processes import FabricProcesses
from forgefield.trainers.fabric.trainer import FabricTrainer


def prepare(config: RunConfig) -> FabricProcesses:
    """Connect the processes that do a run.

    Raises:
        UserError: they are not as many as it asks for.
    """
    return FabricProcesses(connect(config))


def make_trainer(
    config: RunConfig,
    processes: FabricProcesses,
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
        potential, config.training, processes, checkpoint_path=checkpoints, log_file=log_file, fingerprint=fingerprint
    )
    trainer.set_datasets(train, valid)
    return trainer
