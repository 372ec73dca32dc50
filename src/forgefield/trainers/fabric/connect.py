"""Connects this process with those it was started with: by ``forgefield train``, ``torchrun`` or Slurm's ``srun``."""

import logging
import os

import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments import (
    ClusterEnvironment,
    LightningEnvironment,
    SLURMEnvironment,
    TorchElasticEnvironment,
)
from lightning.fabric.strategies import DDPStrategy
from lightning.fabric.utilities.rank_zero import rank_zero_module

from forgefield.config import RunConfig
from forgefield.errors import UserError

PRECISIONS = {"float32": "32-true", "float64": "64-true", "bf16-mixed": "bf16-mixed"}


class ExactDDP(DDPStrategy):
    """Connected processes whose gradients a trainer adds up itself.

    PyTorch's own wrapper takes their mean, as if all processes had the same number of structures.
    """

    def setup_module(self, module: torch.nn.Module) -> torch.nn.Module:
        return module

    @property
    def root_device(self) -> torch.device:
        return self.parallel_devices[self.local_rank % len(self.parallel_devices)]


def connect(config: RunConfig) -> Fabric:
    """Fabric for this process, on a GPU where there is one, else on the CPU, connected with all others.

    Raises:
        UserError: there are not as many processes or devices as ``config`` asks for.
    """
    environment = _environment()
    count = environment.world_size()
    if count != config.n_devices:
        raise UserError(
            f"devices: backend fabric found {count} processes, but devices x n_nodes is {config.n_devices}; start this "
            "by `forgefield train`, which starts the processes, or by torchrun or srun with as many"
        )
    # processes that `forgefield train` has started are all on one machine, however many nodes were asked for
    local = int(os.environ.get("LOCAL_WORLD_SIZE", config.devices)) if count > 1 else 1
    gpus = torch.cuda.device_count()
    # some sites show each of Slurm's tasks no GPU but its own
    if gpus == 1 and "SLURM_STEP_NUM_TASKS" in os.environ:
        local = 1
    if gpus and local > gpus:
        raise UserError(f"devices: {local} are asked for, but {gpus} GPUs are here")
    # reports of every connection; which of Lightning's loggers writes some of them depends on what is imported
    for logger in (logging.getLogger("lightning.fabric"), rank_zero_module.log):
        logger.setLevel(logging.WARNING)
    fabric = Fabric(
        accelerator="cuda" if gpus else "cpu",
        devices=local,
        num_nodes=count // local,
        strategy=ExactDDP() if count > 1 else "auto",
        precision=PRECISIONS[config.training.precision],
        plugins=[environment],
    )
    fabric.launch()
    return fabric


def _environment() -> ClusterEnvironment:
    """Who started this process, and with how many others."""
    # `forgefield train` names ranks as torchrun does
    if "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return TorchElasticEnvironment()
    if int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
        if "SLURM_NTASKS_PER_NODE" not in os.environ:
            raise UserError("devices: srun was started without --ntasks-per-node; give it the number of devices")
        return SLURMEnvironment(auto_requeue=False)
    return LightningEnvironment()
