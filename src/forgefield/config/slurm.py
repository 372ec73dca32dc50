"""``slurm``: what `snakemake --profile slurm` asks the cluster for."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from forgefield.config.base import AsNumber, PositiveInteger, Section

# what the plugin takes; with a letter, for a mere number would be meant as how many
GPU_TYPE = re.compile(r"[A-Za-z0-9_.]*[A-Za-z][A-Za-z0-9_.]*")


def _gpus(value: Any) -> Any:
    if isinstance(value, bool) or (isinstance(value, str) and GPU_TYPE.fullmatch(value)):
        return value
    raise ValueError(f"expected true, false or a type of GPU such as a100, found {value!r}; `devices` is how many")


class SlurmConfig(Section):
    """What `snakemake --profile slurm` asks Slurm for ([docs/slurm.md](../docs/slurm.md)); nothing is computed anew
    when it changes, but for `launcher`. `forgefield doctor --slurm` proposes it for the cluster it is started on."""

    account: str | None = None
    """Account that all jobs are charged to. Not given: the user's default."""

    partition: str | None = None
    """Partition of training and evaluation, and of all other stages without `cpu_partition`. Not given: the cluster's
    default."""

    cpu_partition: str | None = None
    """Partition of conversion, import, statistics and plots, where it is another; `qos` and `constraint` are then for
    training and evaluation only."""

    qos: str | None = None
    """Quality of service."""

    constraint: str | None = None
    """Features that nodes must have, as for `sbatch --constraint`."""

    gpus: Annotated[bool | str, BeforeValidator(_gpus)] = False
    """Whether each of a run's `devices` is a GPU, or the type of GPU that it is, such as `a100`. `false`: CPU cores."""

    cpus_per_device: PositiveInteger = 4
    """CPU cores for each of a run's devices, and for each job of the other stages."""

    mem_mb: Annotated[int, Field(ge=800), AsNumber] = 8000
    """Memory of training and evaluation on each node, MB, of which Snakemake takes up to 200."""

    hours: Annotated[float, Field(ge=0.02, allow_inf_nan=False), AsNumber] = 24.0
    """Time limit of training and evaluation, long enough to start and compile, which takes minutes. A training that
    needs longer saves, and continues in a job of its own."""

    launcher: Literal["srun", "mpirun"] = "srun"
    """What starts the processes of a job. `mpirun`: only for `parallelism: mpi`, where `srun` cannot start MPI."""
