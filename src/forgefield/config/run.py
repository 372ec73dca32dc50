"""The whole configuration, and what one run makes of it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from forgefield.config.base import Name, PositiveInteger, Section
from forgefield.config.dataset import DatasetConfig
from forgefield.config.engine_keys import refuse_foreign_settings
from forgefield.config.evaluation import EvaluationConfig, PlotsConfig, StatisticsConfig
from forgefield.config.messages import did_you_mean, first_problem
from forgefield.config.model import ModelConfig
from forgefield.config.slurm import SlurmConfig
from forgefield.config.training import TrainingConfig
from forgefield.errors import UserError


class RunKeys(Section):
    """The keys that hold for every run and that an entry of ``runs`` can override."""

    dataset: Name | None = None
    """Name of an entry of `datasets`."""

    model: Name | None = None
    """Name of an entry of `models`."""

    backend: Literal["jax", "fabric"] = "jax"
    """Engine of training: `jax`, or `fabric` (PyTorch with Lightning Fabric)."""

    parallelism: Literal["auto", "single", "mpi", "jax"] = "auto"
    """How backend `jax` uses several devices: `single` (one device), `jax` (JAX's own collectives, one process for each
    node), `mpi` (one process for each device), or `auto` (`single` for one device, else `jax`)."""

    devices: PositiveInteger = 1
    """Devices on each node: GPUs, or CPU cores where there are none, of which up to four may share a core; backend
    `fabric` runs a process for each."""

    n_nodes: PositiveInteger = 1
    """Number of nodes. In a Slurm job, `forgefield train` starts a process on each (`jax`), or one for each device
    (`mpi`, backend `fabric`)."""

    slurm: SlurmConfig = SlurmConfig()
    """What `snakemake --profile slurm` asks the cluster for."""

    output_path: str | None = None
    """Directory of the run, in which `forgefield train` also converts the data, imports the model and computes the
    statistics; for several nodes on a file system that all of them share. Not given: the stages do that, and the run
    is in `results/runs/NAME`. The workflow has its own place for everything, and says so."""

    training: TrainingConfig = TrainingConfig()
    """Batches, optimizer, learning rate, loss and when to stop."""

    evaluation: EvaluationConfig = EvaluationConfig()
    """What the trained model is evaluated on."""

    plots: PlotsConfig = PlotsConfig()
    """How plots look."""


class RunConfig(RunKeys):
    """One run with all its settings."""

    name: Name
    """Name of the run, and of its directory under `results/runs`."""

    dataset: Name
    """Name of the dataset."""

    model: Name
    """Name of the model."""

    statistics: StatisticsConfig = StatisticsConfig()
    """Settings of the statistics, the same for all runs."""

    @property
    def n_devices(self) -> int:
        """Devices of all nodes together."""
        return self.devices * self.n_nodes

    @property
    def local_devices(self) -> int:
        """Devices of each process: one, but with JAX's own collectives all of a node."""
        return self.devices if self.backend == "jax" and self.parallelism != "mpi" else 1

    @property
    def step_batch(self) -> int:
        """Structures per optimizer step: ``training.batch``, rounded up where all processes have the same number."""
        training = self.training
        if self.backend == "jax" or (training.batching == "dynamic" and training.balance == "exact"):
            return training.batch
        return -(-training.batch // self.n_devices) * self.n_devices

    @model_validator(mode="before")
    @classmethod
    def _usual_batching(cls, content: Any) -> Any:
        """Fill in ``training.batching``, whose default depends on the backend."""
        training = content.get("training", {})
        if isinstance(training, Mapping) and training.get("batching") is None:
            usual = {"batching": "dynamic" if content.get("backend") == "fabric" else "fixed"}
            return {**content, "training": {**training, **usual}}
        return content

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        training = self.training
        refuse_foreign_settings(self.backend, self.parallelism, training)
        usual_margin = TrainingConfig.model_fields["dynamic_margin"].default
        if training.batching == "fixed" and training.dynamic_margin != usual_margin:
            raise ValueError("training.dynamic_margin is given, but batching is fixed; leave it out, or write dynamic")
        if self.parallelism == "single" and self.n_devices > 1:
            raise ValueError(
                f"parallelism is single, but devices x n_nodes is {self.n_devices}; write parallelism: auto"
            )
        if self.slurm.launcher == "mpirun" and self.parallelism != "mpi":
            raise ValueError("slurm.launcher is mpirun, which is for parallelism: mpi; write srun")
        if self.backend == "jax" and training.batch % self.n_devices:
            raise ValueError(
                f"training.batch is {training.batch}, not a multiple of devices x n_nodes = {self.n_devices};"
                f" write {-(-training.batch // self.n_devices) * self.n_devices}"
            )
        return self


class Config(RunKeys):
    """Everything the configuration file can say."""

    datasets: dict[Name, DatasetConfig] = Field(default={})
    """Reference data by name. An entry can also be a file `datasets/NAME.yaml` beside the configuration file."""

    models: dict[Name, ModelConfig] = Field(default={})
    """Models by name. An entry can also be a file `models/NAME.yaml` beside the configuration file."""

    statistics: StatisticsConfig = StatisticsConfig()
    """Energy shifts and what the training set looks like; the same for all runs."""

    runs: Annotated[dict[Name, dict[str, Any]], Field(min_length=1)] | None = None
    """Several runs by name, each with the keys it overrides: any of `dataset`, `model`, `backend`, `parallelism`,
    `devices`, `n_nodes`, `slurm`, `output_path`, `training`, `evaluation`, `plots`. Not given: one run
    `{dataset}-{model}-{backend}`."""

    @property
    def run_names(self) -> list[str]:
        """Names of all runs.

        Raises:
            UserError: neither runs nor both a dataset and a model are named.
        """
        if self.runs is not None:
            return list(self.runs)
        for key, entries in (("dataset", self.datasets), ("model", self.models)):
            if getattr(self, key) is None:
                known = f"one of: {', '.join(entries)}" if entries else f"the name of an entry of {key}s"
                raise UserError(f"{key}: missing; expected {known}")
        return [f"{self.dataset}-{self.model}-{self.backend}"]

    def run(self, name: str) -> RunConfig:
        """The settings of one run: the keys of the top level, overridden by those of ``runs.NAME``.

        Raises:
            UserError: no run has this name, or its settings are not valid.
        """
        if name not in self.run_names:
            raise UserError(f"runs: no run is named {name!r}{did_you_mean(name, self.run_names)}")
        overrides = (self.runs or {}).get(name, {})
        where = f"runs.{name}." if self.runs else ""
        if foreign := [key for key in overrides if key not in RunKeys.model_fields]:
            raise UserError(f"{where}{foreign[0]}: not a key of a run{did_you_mean(foreign[0], RunKeys.model_fields)}")
        base = self.model_dump(include={*RunKeys.model_fields, "statistics"})
        named = {key: value for key, value in base.items() if value is not None}
        try:
            run = RunConfig.model_validate(merged(named, overrides) | {"name": name})
        except ValidationError as error:
            raise UserError(first_problem(error, RunConfig, where)) from None
        for key, entry, entries in (("dataset", run.dataset, self.datasets), ("model", run.model, self.models)):
            if entry not in entries:
                raise UserError(f"{where}{key}: {key}s has no entry {entry!r}{did_you_mean(entry, entries)}")
        _check_architecture(where, run, self.models[run.model])
        n_train = self.datasets[run.dataset].split.train
        if isinstance(n_train, int):  # else their number is not known yet
            _check_batches(where, run, n_train)
            _check_warmup(where, run, n_train)
        return run


def _check_architecture(where: str, run: RunConfig, model: ModelConfig) -> None:
    if run.backend == "jax" and model.architecture != "mace":
        raise UserError(
            f"{where}backend: jax trains architecture mace, but models.{run.model}.architecture is "
            f"{model.architecture}; write backend: fabric"
        )


def _check_batches(where: str, run: RunConfig, n_train: int) -> None:
    if run.training.drop_last and n_train < run.step_batch:
        raise UserError(
            f"{where}training.drop_last leaves nothing of {n_train} training structures, which do not fill one batch "
            f"of {run.step_batch}; lower {where}training.batch, or leave out drop_last"
        )


def _check_warmup(where: str, run: RunConfig, n_train: int) -> None:
    """The warm-up, and what is constant after it, must end before training does."""
    training = run.training
    steps = training.epochs * -(-n_train // run.step_batch)
    before, names = training.schedule.warmup_steps, "warmup_steps"
    if training.schedule.constant_steps:
        before, names = before + training.schedule.constant_steps, "warmup_steps + constant_steps"
    if before >= steps:
        raise UserError(
            f"{where}training.schedule.{names}: expected fewer than the {steps} steps of training"
            f" ({training.epochs} epochs), found {before}"
        )


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``changes`` on top, section by section."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result
