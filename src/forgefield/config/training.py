"""``training``: batches, optimizer, learning rate, loss and when to stop."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from forgefield.config.base import (
    AsNumber,
    Fraction,
    Minutes,
    NonNegative,
    NonNegativeInteger,
    Positive,
    PositiveInteger,
    Section,
    Seed,
)

LIGHTNING_NAMES = {"32-true": "float32", "64-true": "float64"}


def _own_name(precision: str) -> str:
    """What Lightning calls a precision, as it is called here."""
    return LIGHTNING_NAMES.get(precision, precision)


# names keys that may have changed in mid-training all the same; no setting, which would make other stages run again
ALLOWED = "FORGEFIELD_ALLOW_CHANGED"


class Schedule(Section):
    """How the learning rate changes from step to step."""

    kind: Literal["constant", "cosine", "exponential"] = "cosine"
    """`constant`, or a fall along a `cosine` or an `exponential` over all steps."""

    warmup_steps: NonNegativeInteger = 0
    """Optimizer steps in which the learning rate first rises linearly to `lr`."""

    constant_steps: NonNegativeInteger = 0
    """Optimizer steps at `lr` between the rise and the fall, for `cosine` and `exponential`."""

    final_fraction: Annotated[float, Field(gt=0, le=1), AsNumber] = 0.01
    """Learning rate at the end as a fraction of `lr`, for `cosine` and `exponential`."""

    @model_validator(mode="after")
    def _constant_before_a_fall(self) -> Self:
        if self.constant_steps and self.kind == "constant":
            raise ValueError("constant_steps is given, but kind is constant, without a fall; leave it out")
        return self


class Loss(Section):
    """What training minimizes: a weighted sum over the labels, each a mean over the structures of a batch."""

    kind: Literal["mse", "huber"] = "mse"
    """`mse`: squared errors; `huber`: squared below `huber_delta` and linear above, less moved by outliers."""

    # The default run trained with energy and forces at 10 and 1, and at 1 and 100, all else and the seed equal, ends at
    # energy errors (MAE of valid, test) of 1.16, 1.69 and 1.51, 2.14 meV/atom, force errors of 47.9, 54.0 and 46.9,
    # 53.3 meV/Å. On the way, 1 and 100 shifts the energies by up to 34 meV/atom in the first ten epochs, which a
    # short training does not get rid of; 10 and 1 stays below 6.
    energy: NonNegative = 10.0
    """Weight of the error of the energy per atom, in eV/atom."""

    forces: NonNegative = 1.0
    """Weight of the error of the force components, in eV/Å."""

    virial: NonNegative = 1.0
    """Weight of the error of the virial per atom, in eV/atom, where there are virials or stresses."""

    huber_delta: Positive = 0.01
    """Error at which `huber` turns linear, in the units above."""

    @model_validator(mode="after")
    def _something_to_learn(self) -> Self:
        if not self.energy + self.forces + self.virial:
            raise ValueError("the weights energy, forces and virial are all 0; expected at least one above 0")
        return self


class TrainingConfig(Section):
    """How the model is trained."""

    batch: PositiveInteger = 8
    """Structures per optimizer step, over all devices together. Where backend `fabric` gives each process the same
    number, it is rounded up."""

    eval_batch: PositiveInteger = 32
    """Structures at once in validation, and on each device in evaluation; changes speed and memory, not results."""

    batching: Literal["fixed", "dynamic"] | None = None
    """`fixed`: the same number of structures in every batch; `dynamic`: about the same number of atoms and of neighbor
    pairs (only for backend `fabric`). `null`: `dynamic` for backend `fabric`, `fixed` for `jax`."""

    balance: Literal["exact", "repeat"] = "exact"
    """How processes share an epoch. `exact`: every structure counts once, and processes with nothing left to do
    contribute nothing. `repeat` (only for backend `fabric`): each process has batches of its own; those with fewer than
    others repeat some, or with `drop_last` the others discard theirs."""

    # With less, processes of few structures often need several evaluations of the model for a batch; with more, memory
    # is provided that is hardly used. Figures: docs/parallel.md.
    dynamic_margin: Annotated[float, Field(ge=1, allow_inf_nan=False), AsNumber] = 1.1
    """How many atoms and pairs a process takes at once in dynamic batches, as a multiple of what its share of `batch`
    average structures has. A larger structure goes alone."""

    drop_last: bool = False
    """Leave out of each epoch what makes no full batch; with `balance: repeat`, what some processes have beyond the
    others."""

    epochs: PositiveInteger = 100
    """Largest number of passes over the training structures."""

    micro_batches: PositiveInteger = 1
    """Gradient accumulation (only for backend `fabric`): parts in which each device computes its structures of a batch,
    one after the other; changes memory and speed, not results."""

    optimizer: Literal["adam", "adamw", "muon"] = "adam"
    """`adam`, `adamw` for decoupled weight decay, or `muon` (only for backend `fabric`): Muon for weight matrices,
    AdamW for all other parameters."""

    weight_decay: NonNegative = 0.0
    """Weight decay per step, in units of the learning rate (`adamw` and `muon` only)."""

    lr: Positive = 1e-3
    """Largest learning rate."""

    schedule: Schedule = Schedule()
    """Learning rate from step to step."""

    clip_norm: Positive | None = 10.0
    """Largest norm of the gradient of all parameters; a longer one is scaled down. `null`: no clipping."""

    loss: Loss = Loss()
    """Weights of energy, forces and virial."""

    ema: Fraction | None = 0.99
    """Decay of the exponential moving average of the parameters, which validation and the final model use. `null`: no
    average."""

    precision: Annotated[
        Literal["float32", "float64", "bf16-mixed", "32-true", "64-true"], AfterValidator(_own_name)
    ] = "float32"
    """Floating-point type of training: `float32` (or `32-true`), `float64` (or `64-true`), or `bf16-mixed` (only for
    backend `fabric`): parameters and optimizer in float32, matrix products in bfloat16."""

    kernels: Literal["auto", "reference", "cuequivariance"] = "auto"
    """What evaluates MACE's products and convolutions (only for backend `jax`); changes speed, not results. `auto`:
    `cuequivariance` on a GPU where it is installed, else `reference`."""

    seed: Seed = 0
    """Seed of the order of training structures."""

    early_stopping: PositiveInteger | None = None
    """Stop after so many epochs without a lower validation loss. `null`: run all epochs."""

    checkpoint_every: PositiveInteger = 1
    """Epochs between checkpoints, from which a stopped run continues."""

    checkpoint_steps: PositiveInteger | None = None
    """Optimizer steps between further checkpoints, in an epoch. `null`: none."""

    checkpoint_minutes: Positive | None = 10.0
    """Minutes between further checkpoints, in an epoch. `null`: none."""

    keep_checkpoints: PositiveInteger = 2
    """How many checkpoints stay; each has the best model so far, too."""

    stop_before: Minutes | None = None
    """Wall-clock time of `forgefield train`, from its start: minutes, or a text such as `90 min`, `3.5 h` or `2 d`. In
    time before it the run stops with a checkpoint and exit code 75, and the same command continues it. It is
    not known before how long the first compilation takes, which may overrun a short time. `null`: no limit but that of
    the Slurm job, before whose end it stops in any case."""

    hang_timeout: Positive | None = 600.0
    """Seconds without a new batch after which a training of several processes ends, with the process named that no
    longer answers; more than a compilation takes, or the writing of a checkpoint. `null`: wait for ever."""

    @model_validator(mode="after")
    def _decay_needs_adamw(self) -> Self:
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError("weight_decay is given, but optimizer is adam; write optimizer: adamw")
        return self

    @property
    def dtype(self) -> Literal["float32", "float64"]:
        """The type of parameters and data."""
        return "float64" if self.precision == "float64" else "float32"
